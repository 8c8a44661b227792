/** Replays answers of the APIs of both shops, in the form of their documentation: node --test connectors.test.mjs. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { productOf, receiver, verify } from './receive.mjs'
import { shopify } from './shopify.mjs'
import { wooCommerce } from './woocommerce.mjs'

const answers = (name) => JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url)))
const secret = `whsec_${Buffer.from('a secret of an endpoint').toString('base64')}`
const money = (amount) => ({ amount, currencyCode: 'CNY' })
const recipient = { name: 'Li Lei', phone: '+8613800000000', country: 'CN', city: 'Shanghai', street: 'Nanjing Road 1', postalCode: '200000' }
const order = { orderId: 'ord_1', number: '2026112000001', itemId: 'itm_1', status: 'PAID', quantity: 2, unitPrice: money('1299.00'), total: money('2598.00'), placedAt: '2026-11-20T12:00:00Z', recipient }
const event = (data, type = 'order.paid') => JSON.stringify({ type, timestamp: '2026-11-20T12:00:03Z', data })

function signed(body, { id = 'evt_1', at = Math.floor(Date.now() / 1000), key = 'a secret of an endpoint' } = {}) {
  const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,AAAA v1,${signature}` }
}

const open = []
after(() => open.forEach((server) => server.close()))

async function listen(server) {
  open.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}

/** A shop that answers as `answer` says, and keeps what it was asked. */
async function store(answer) {
  const asked = []
  const url = await listen(
    createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      const one = { method: request.method, url: request.url, headers: request.headers, body: text && JSON.parse(text) }
      asked.push(one)
      const { status, body } = answer(one)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }),
  )
  return { url, asked }
}

const shops = {
  woocommerce: {
    take: (url) => wooCommerce({ url, key: 'ck_1', secret: 'cs_1', items: 'itm_0=1,itm_1=42' }),
    isCreate: ({ method }) => method === 'POST',
    before: 'others',
    found: ({ created }) => ({ status: 200, body: [created.body] }),
    check({ url, headers, body }) {
      assert.equal(url, '/wp-json/wc/v3/orders')
      assert.equal(headers.authorization, `Basic ${btoa('ck_1:cs_1')}`)
      assert.deepEqual(body.line_items, [{ product_id: 42, quantity: 2, subtotal: '2598.00', total: '2598.00' }])
      assert.equal(body.shipping.city, 'Shanghai')
      assert.deepEqual(body.meta_data, [{ key: 'seckill_order', value: order.number }])
    },
  },
  shopify: {
    take: (url) => shopify({ url, token: 'shpat_1', items: 'itm_1=43' }),
    isCreate: ({ body }) => body.query.startsWith('mutation'),
    before: 'none',
    found: ({ found }) => found,
    check({ url, headers, body }) {
      assert.equal(url, '/admin/api/2025-10/graphql.json')
      assert.equal(headers['x-shopify-access-token'], 'shpat_1')
      const { sourceIdentifier, lineItems, financialStatus, shippingAddress } = body.variables.order
      assert.deepEqual([sourceIdentifier, financialStatus, shippingAddress.zip], [order.number, 'PAID', '200000'])
      assert.deepEqual(lineItems, [{ variantId: 'gid://shopify/ProductVariant/43', quantity: 2, priceSet: { shopMoney: money('1299.00') } }])
    },
  },
}

for (const [name, shop] of Object.entries(shops)) {
  test(`${name}: a paid order becomes one order, however often it is delivered`, async () => {
    const recorded = answers(name)
    let exists = false
    const { url, asked } = await store((one) => {
      if (!shop.isCreate(one)) return exists ? shop.found(recorded) : recorded[shop.before]
      exists = true
      return recorded.created
    })
    const deliver = async (address, id) => (await fetch(address, { method: 'POST', body: event(order), headers: signed(event(order), { id }) })).status
    const first = await listen(receiver(secret, shop.take(url)))
    assert.deepEqual(await Promise.all([deliver(first, 'evt_1'), deliver(first, 'evt_1'), deliver(first, 'evt_2')]), [204, 204, 204])
    const restarted = await listen(receiver(secret, shop.take(url)))
    assert.equal(await deliver(restarted, 'evt_1'), 204)
    const created = asked.filter(shop.isCreate)
    assert.equal(created.length, 1)
    shop.check(created[0])
  })

  test(`${name}: a refusal is answered with 503, so that the delivery is repeated`, async () => {
    const recorded = answers(name)
    const { url } = await store((one) => (shop.isCreate(one) ? recorded.refused : recorded[shop.before]))
    const said = []
    const address = await listen(receiver(secret, shop.take(url), (line) => said.push(line)))
    const body = event(order)
    assert.equal((await fetch(address, { method: 'POST', body, headers: signed(body) })).status, 503)
    assert.match(said[0], /^order 2026112000001: (WooCommerce|Shopify): /)
  })
}

test('Shopify’s limit of requests is answered with 503 too', async () => {
  const { url } = await store(() => answers('shopify').throttled)
  await assert.rejects(shops.shopify.take(url)(order), /THROTTLED/)
})

test('only signed requests of the last minutes are taken', async () => {
  const taken = []
  const address = await listen(receiver(secret, async (each) => taken.push(each.number), () => {}))
  const body = event(order)
  const post = async (headers, text = body) => (await fetch(address, { method: 'POST', body: text, headers })).status
  assert.equal(await post({}), 401)
  assert.equal(await post(signed(body, { key: 'another' })), 401)
  assert.equal(await post(signed(body, { at: 1 })), 401)
  assert.equal(await post({ ...signed(body), 'webhook-timestamp': 'now' }), 401)
  assert.equal(await post(signed(body), `${body} `), 401)
  assert.equal(await post({ ...signed(body), 'webhook-id': 'evt_2' }), 401)
  assert.equal(await post(signed(event(order, 'order.placed')), event(order, 'order.placed')), 204)
  assert.deepEqual(taken, [])
  assert.equal(await post(signed(body)), 204)
  assert.deepEqual(taken, [order.number])
  assert.throws(() => verify(secret, { ...signed(body), 'webhook-signature': 'v2,x' }, body))
  assert.throws(() => productOf('itm_1=1', 'itm_2'), /no product/)
})
