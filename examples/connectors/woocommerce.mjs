/**
 * Makes an order in WooCommerce of each order that was paid in a flash sale.
 *
 *   WEBHOOK_SECRET=whsec_… WOO_URL=https://store.example WOO_KEY=ck_… WOO_SECRET=cs_… ITEMS=itm_…=42 node woocommerce.mjs
 *
 * `seckill webhooks add --events order.paid` prints the secret; WooCommerce makes keys under Settings, Advanced, REST API
 * (read and write). ITEMS maps items of sales to ids of products.
 */
import { pathToFileURL } from 'node:url'
import { productOf, receiver } from './receive.mjs'

const MARK = 'seckill_order' // in the metadata of the order there
const PAGE = 100

/** Returns the function that makes an order in the store, unless it is there. */
export function wooCommerce({ url, key, secret, items, fetch = globalThis.fetch }) {
  async function call(method, path, body) {
    const response = await fetch(`${url}/wp-json/wc/v3/${path}`, {
      method,
      headers: { authorization: `Basic ${btoa(`${key}:${secret}`)}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(8_000), // the sender waits ten seconds
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`WooCommerce: ${answer.code ?? response.status} ${answer.message ?? ''}`)
    return answer
  }

  /** The order there, if an earlier delivery made it. The API cannot search metadata, so orders since then are read. */
  async function find({ number, placedAt }) {
    for (let page = 1; ; page++) {
      const query = new URLSearchParams({ after: placedAt, dates_are_gmt: 'true', order: 'asc', per_page: PAGE, page })
      const orders = await call('GET', `orders?${query}`)
      const found = orders.find(({ meta_data }) => meta_data.some((each) => each.key === MARK && each.value === number))
      if (found || orders.length < PAGE) return found
    }
  }

  return async (order) => {
    const before = await find(order)
    if (before) return before
    const { number, itemId, quantity, total, recipient } = order
    const [first_name = '', ...rest] = (recipient?.name ?? '').split(' ')
    const address = recipient && {
      first_name, last_name: rest.join(' '), phone: recipient.phone, country: recipient.country, state: recipient.region ?? '',
      city: recipient.city, address_1: recipient.street, postcode: recipient.postalCode ?? '',
    }
    return call('POST', 'orders', {
      status: 'processing',
      currency: total.currencyCode,
      set_paid: true,
      transaction_id: number,
      payment_method_title: 'Flash sale',
      line_items: [{ product_id: Number(productOf(items, itemId)), quantity, subtotal: total.amount, total: total.amount }],
      ...(address && { billing: address, shipping: address }),
      meta_data: [{ key: MARK, value: number }],
    })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { WEBHOOK_SECRET, WOO_URL: url, WOO_KEY: key, WOO_SECRET: secret, ITEMS: items, PORT = '3000' } = process.env
  receiver(WEBHOOK_SECRET, wooCommerce({ url, key, secret, items })).listen(PORT)
}
