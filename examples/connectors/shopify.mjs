/**
 * Makes an order in Shopify of each order that was paid in a flash sale.
 *
 *   WEBHOOK_SECRET=whsec_… SHOPIFY_URL=https://store.myshopify.com SHOPIFY_TOKEN=shpat_… ITEMS=itm_…=42 node shopify.mjs
 *
 * `seckill webhooks add --events order.paid` prints the secret; the token is of a custom app with write_orders and
 * read_orders. ITEMS maps items of sales to ids of variants.
 */
import { pathToFileURL } from 'node:url'
import { productOf, receiver } from './receive.mjs'

const API = 'admin/api/2025-10/graphql.json'

const FIND = `query Find($query: String!) { orders(first: 1, query: $query) { nodes { id name } } }`
const CREATE = `mutation Create($order: OrderCreateOrderInput!, $options: OrderCreateOptionsInput) {
  orderCreate(order: $order, options: $options) { order { id name } userErrors { field message } } }`

/** Returns the function that makes an order in the store, unless it is there. */
export function shopify({ url, token, items, fetch = globalThis.fetch }) {
  const made = new Map() // the search of Shopify finds an order some seconds after it was made

  async function call(query, variables) {
    const response = await fetch(`${url}/${API}`, {
      method: 'POST',
      headers: { 'x-shopify-access-token': token, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(8_000), // the sender waits ten seconds
    })
    const { data, errors } = await response.json()
    if (!response.ok || errors) throw new Error(`Shopify: ${JSON.stringify(errors ?? response.status)}`)
    return data
  }

  return async (order) => {
    const { number, itemId, quantity, unitPrice, total, recipient } = order
    const { orders } = await call(FIND, { query: `source_identifier:"${number}"` })
    const before = orders.nodes[0] ?? made.get(number)
    if (before) return before
    const money = ({ amount, currencyCode }) => ({ shopMoney: { amount, currencyCode } })
    const [firstName = '', ...rest] = (recipient?.name ?? '').split(' ')
    const shippingAddress = recipient && {
      firstName, lastName: rest.join(' ') || firstName, phone: recipient.phone, countryCode: recipient.country,
      city: recipient.city, address1: recipient.street, zip: recipient.postalCode,
    }
    const { orderCreate } = await call(CREATE, {
      order: {
        currency: total.currencyCode,
        financialStatus: 'PAID',
        sourceIdentifier: number,
        tags: ['flash-sale'],
        lineItems: [{ variantId: `gid://shopify/ProductVariant/${productOf(items, itemId)}`, quantity, priceSet: money(unitPrice) }],
        transactions: [{ kind: 'SALE', status: 'SUCCESS', gateway: 'flash sale', amountSet: money(total) }],
        ...(shippingAddress && { shippingAddress }),
      },
      options: { inventoryBehaviour: 'DECREMENT_IGNORING_POLICY' },
    })
    const [refused] = orderCreate.userErrors
    if (refused) throw new Error(`Shopify: ${refused.field?.join('.')}: ${refused.message}`)
    made.set(number, orderCreate.order)
    return orderCreate.order
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { WEBHOOK_SECRET, SHOPIFY_URL: url, SHOPIFY_TOKEN: token, ITEMS: items, PORT = '3000' } = process.env
  receiver(WEBHOOK_SECRET, shopify({ url, token, items })).listen(PORT)
}
