/** Receives the webhooks of a Seckill server: verifies them, and hands each paid order on once. Without dependencies. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const MAX_BODY = 64 << 10 // bytes
const MAX_AGE = 300 // seconds, as Standard Webhooks has it

/** Verifies a request after Standard Webhooks and returns its event; throws for any other. */
export function verify(secret, headers, body, now = Date.now() / 1000) {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures = '' } = headers
  if (!id || !(Math.abs(now - Number(at)) <= MAX_AGE)) throw new Error('too old, or no webhook')
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest()
  const good = signatures.split(' ').some((each) => {
    const [version, text = ''] = each.split(',')
    const given = Buffer.from(text, 'base64')
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  })
  if (!good) throw new Error('the signature is wrong')
  return JSON.parse(body)
}

/**
 * A server that answers 204 once `take(order)` is done, so that the delivery is repeated until then. Deliveries of one order
 * wait for each other: `take` looks for the order before it makes one.
 */
export function receiver(secret, take, log = console.error) {
  const running = new Map()
  const once = (order) => {
    const next = (running.get(order.number) ?? Promise.resolve()).catch(() => {}).then(() => take(order))
    running.set(order.number, next)
    return next.finally(() => running.get(order.number) === next && running.delete(order.number))
  }
  return createServer(async (request, response) => {
    const chunks = []
    let size = 0
    for await (const chunk of request) {
      size += chunk.length
      if (size > MAX_BODY) return response.writeHead(413).end()
      chunks.push(chunk)
    }
    let event
    try {
      event = verify(secret, request.headers, Buffer.concat(chunks).toString())
    } catch {
      return response.writeHead(401).end()
    }
    try {
      if (event.type === 'order.paid') await once(event.data)
      response.writeHead(204).end()
    } catch (error) {
      log(`order ${event.data.number}: ${error.message}`)
      response.writeHead(503).end()
    }
  })
}

/** The product of another shop for an item, from a setting such as `itm_1=42,itm_2=43`. */
export function productOf(items, itemId) {
  const found = Object.fromEntries(items.split(',').map((pair) => pair.split('=')))[itemId]
  if (!found) throw new Error(`no product for ${itemId}`)
  return found
}
