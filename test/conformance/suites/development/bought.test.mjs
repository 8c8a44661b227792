// The marker in every text of an order, through gate, stream, worker and payment. The
// runner searches the log of all of them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { marker } from '../../marker.mjs';
import { data, waitTimeout, post, signIn } from '../../server.mjs';

const solve = (parameters) => {
  const { salt, challenge, maxNumber } = JSON.parse(parameters);
  for (let n = 0; n <= maxNumber; n++) {
    if (createHash('sha256').update(salt + n).digest('hex') === challenge) return String(n);
  }
  return assert.fail('the proof of work has no solution');
};

test('an order is written, paid and cancelled with a marker in every text', { timeout: 2 * waitTimeout }, async () => {
  const headers = { authorization: `Bearer ${await signIn('bob@demo.example')}` };
  const { sales } = await data('{ sales(first: 1) { edges { node { id items { id } } } } }');
  const { id: saleId, items } = sales.edges[0].node;
  let token;
  while (!token) {
    const { createCaptcha } = await data(
      'mutation($s: ID!) { createCaptcha(input: { purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK }) { challenge { id parameters } } }', { s: saleId }, headers);
    const { id: challengeId, parameters } = createCaptcha.challenge;
    const { issueSeckillPath } = await data(
      'mutation($i: IssueSeckillPathInput!) { issueSeckillPath(input: $i) { path { token } userErrors { code } } }',
      { i: { itemId: items[0].id, captcha: { challengeId, answer: solve(parameters) } } }, headers);
    token = issueSeckillPath.path?.token;
    if (!token) await pause(500); // the sale opens in seconds
  }
  const { placeOrder } = await data(
    'mutation($i: PlaceOrderInput!) { placeOrder(input: $i) { orderTask { id } userErrors { code } } }',
    { i: { idempotencyKey: `${marker}-buy`, itemId: items[0].id, pathToken: token } }, headers);
  assert.deepEqual(placeOrder.userErrors, []);
  const task = placeOrder.orderTask.id;
  let order;
  while (!order) {
    ({ order } = (await data('query($t: ID!) { orderTask(id: $t) { order { id } } }', { t: task }, headers)).orderTask);
    if (!order) await pause(100);
  }
  const acts = {
    PayOrderInput: ['payOrder', { orderId: order.id, idempotencyKey: `${marker}-pay`, optionId: 'sandbox' }],
    CancelOrderInput: ['cancelOrder', { orderId: order.id, reason: marker }],
    RequestRefundInput: ['requestRefund', { orderId: order.id, reason: marker, idempotencyKey: `${marker}-back` }],
  };
  for (const [input, [act, given]] of Object.entries(acts)) {
    const { body } = await post(`mutation($i: ${input}!) { ${act}(input: $i) { userErrors { code message } } }`, { i: given }, headers);
    assert.ok(!JSON.stringify(body).includes(marker), JSON.stringify(body));
  }
});
