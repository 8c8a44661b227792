// The rows of PROTOCOL.md that need a stream or an account.
import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from 'graphql-sse';
import { Socket, anySale, graphqlURL, signIn } from '../../server.mjs';

const subscribe = (id, document) => ({ id, type: 'subscribe', payload: { query: document } });
const sale = await anySale();
const watch = `subscription { saleStatus(saleId: "${sale}") { kind } }`;

test('Next comes under its id', async () => {
  const socket = await Socket.acknowledged();
  await socket.send(subscribe('a', watch));
  await socket.send(subscribe('b', watch));
  const ids = new Set([(await socket.message()).id, (await socket.message()).id]);
  assert.deepEqual(ids, new Set(['a', 'b']));
  socket.end();
});

test('a duplicate id closes with 4409', async () => {
  const socket = await Socket.acknowledged();
  await socket.send(subscribe('a', watch));
  await socket.send(subscribe('a', watch));
  const { close, reason } = await socket.closed();
  assert.equal(close, 4409);
  assert.equal(reason, 'Subscriber for a already exists');
});

test("the client's Complete ends the stream without an echo, and frees the id", async () => {
  const socket = await Socket.acknowledged();
  for (let i = 0; i < 3; i++) {
    await socket.send(subscribe('a', watch));
    assert.equal((await socket.message()).type, 'next');
    await socket.send({ id: 'a', type: 'complete' });
  }
  await socket.assertIdle();
  socket.end();
});

test('the 21st stream is refused, the others go on', async () => {
  const socket = await Socket.acknowledged();
  for (let i = 0; i < 21; i++) await socket.send(subscribe(String(i), watch));
  const seen = [];
  for (let i = 0; i < 21; i++) seen.push((await socket.message()).type);
  assert.deepEqual(seen.sort(), ['error', ...Array(20).fill('next')]);
  socket.end();
});

test('ConnectionInit with a payload', async () => {
  const token = await signIn('alice@demo.example');
  const socket = await Socket.acknowledged({ authorization: `Bearer ${token}` });
  socket.end();
});

test('the fourth socket of a user closes with 1013 while the others are in use', async () => {
  const token = await signIn('bob@demo.example');
  const sockets = [];
  for (let i = 0; i < 3; i++) {
    const socket = await Socket.acknowledged({ authorization: `Bearer ${token}` });
    await socket.send(subscribe('a', watch));
    assert.equal((await socket.message()).type, 'next');
    sockets.push(socket);
  }
  const fourth = new Socket();
  await fourth.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
  assert.equal((await fourth.closed()).close, 1013);
  for (const socket of sockets) socket.end();
});

test('an SSE stream begins with a snapshot and can be left', async () => {
  const sale = await anySale();
  const token = await signIn('alice@demo.example');
  const client = createClient({ url: graphqlURL, headers: () => ({ authorization: `Bearer ${token}` }) });
  for (let i = 0; i < 3; i++) {
    const stream = client.iterate({ query: `subscription { saleStock(saleId: "${sale}") { kind items { id } } }` });
    const { value } = await stream.next();
    assert.equal(value.data.saleStock.kind, 'SNAPSHOT');
    await stream.return();
  }
  client.dispose();
});
