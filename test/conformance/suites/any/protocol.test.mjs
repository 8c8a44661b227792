// The table of PROTOCOL.md (graphql-transport-ws), row by row, with bare frames.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Socket } from '../../server.mjs';

const query = '{ __typename }'; // answered in every profile

async function refused(frames, code, { acknowledged = true, payload } = {}) {
  const socket = acknowledged ? await Socket.acknowledged(payload) : new Socket();
  for (const frame of frames) await socket.send(frame);
  const { close, reason } = await socket.closed();
  assert.equal(close, code, reason);
}

const subscribe = (id, document = query) => ({ id, type: 'subscribe', payload: { query: document } });

test('ConnectionInit is answered by ConnectionAck', async () => {
  const socket = await Socket.acknowledged();
  await socket.assertIdle();
  socket.end();
});

test('a refused token closes with 4403', () =>
  refused([{ type: 'connection_init', payload: { authorization: 'Bearer nonsense' } }], 4403, { acknowledged: false }));

test('a second ConnectionInit closes with 4429', () => refused([{ type: 'connection_init' }], 4429));

test('no ConnectionInit in time closes with 4408', () => refused([], 4408, { acknowledged: false }));

test('Subscribe before the acknowledgement closes with 4401', () => refused([subscribe('1')], 4401, { acknowledged: false }));

test('text that is not JSON closes with 4400', () => refused(['not json'], 4400));
test('JSON that is no object closes with 4400', () => refused(['[]'], 4400));
test('an unknown type closes with 4400', () => refused([{ type: 'start', id: '1', payload: { query } }], 4400));
test('a message without type closes with 4400', () => refused([{ id: '1' }], 4400));
test('Subscribe without id closes with 4400', () => refused([{ type: 'subscribe', payload: { query } }], 4400));
test('Subscribe without payload closes with 4400', () => refused([{ id: '1', type: 'subscribe' }], 4400));
test('Subscribe without query closes with 4400', () => refused([{ id: '1', type: 'subscribe', payload: {} }], 4400));
test('Subscribe with a query of another type closes with 4400', () => refused([{ id: '1', type: 'subscribe', payload: { query: 1 } }], 4400));
test('Subscribe with variables of another type closes with 4400', () =>
  refused([{ id: '1', type: 'subscribe', payload: { query, variables: 'x' } }], 4400));
test('Complete without id closes with 4400', () => refused([{ type: 'complete' }], 4400));
test('a ConnectionInit payload of another type closes with 4400', () =>
  refused([{ type: 'connection_init', payload: 'x' }], 4400, { acknowledged: false }));

for (const protocols of [[], ['graphql-ws'], ['nonsense']]) {
  test(`subprotocol ${protocols[0] ?? '(none)'} closes with 4406`, async () => {
    const { close } = await new Socket(protocols).closed();
    assert.equal(close, 4406);
  });
}

test('Ping is answered by Pong, an unasked Pong by nothing', async () => {
  const socket = await Socket.acknowledged();
  await socket.send({ type: 'pong' });
  await socket.assertIdle();
  socket.end();
});

test('Ping before ConnectionInit is answered', async () => {
  const socket = new Socket();
  await socket.assertIdle();
  socket.end();
});

test('a query yields Next and Complete', async () => {
  const socket = await Socket.acknowledged();
  await socket.send(subscribe('q'));
  const next = await socket.message();
  assert.equal(next.type, 'next');
  assert.equal(next.id, 'q');
  assert.ok(next.payload.data);
  assert.deepEqual(await socket.message(), { type: 'complete', id: 'q' });
  await socket.assertIdle();
  socket.end();
});

test('an invalid document yields Error, nothing after it, and the socket stays', async () => {
  const socket = await Socket.acknowledged();
  await socket.send(subscribe('e', 'subscription { nonsense }'));
  const error = await socket.message();
  assert.equal(error.type, 'error');
  assert.equal(error.id, 'e');
  assert.ok(Array.isArray(error.payload) && error.payload[0].message);
  await socket.assertIdle();
  await socket.send(subscribe('e')); // the id is free
  assert.equal((await socket.message()).type, 'next');
  socket.end();
});

test('mutations are refused', async () => {
  const socket = await Socket.acknowledged();
  await socket.send(subscribe('m', 'mutation { logout(input: {everywhere: true}) { endedSessions } }'));
  assert.equal((await socket.message()).type, 'error');
  await socket.assertIdle();
  socket.end();
});

test('Complete of an unknown id is ignored', async () => {
  const socket = await Socket.acknowledged();
  await socket.send({ id: 'never', type: 'complete' });
  await socket.assertIdle();
  socket.end();
});

test('a frame above 16 kB closes with 1009', () => refused([{ type: 'ping', payload: { x: 'x'.repeat(17 << 10) } }], 1009));

test('a flood of frames closes with 4429', () => refused(Array(100).fill({ type: 'pong' }), 4429));

test('a foreign origin gets no socket', async () => {
  const socket = new Socket(['graphql-transport-ws'], { origin: 'https://elsewhere.example' });
  const { error } = await socket.next();
  assert.match(String(error), /403/);
});
