// No response echoes what a client sent. The runner also searches the log, at level debug.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import test from 'node:test';
import { Socket, graphqlURL, socketURL, url } from '../../server.mjs';
import { marker, operations, send, adminAuthorization, values, serverTexts } from '../../marker.mjs';

async function assertNotEchoed(address, init = {}) {
  const response = await fetch(address, { redirect: 'manual', ...init });
  const told = (await response.text()) + JSON.stringify([...response.headers]);
  assert.ok(!told.toLowerCase().includes(marker.toLowerCase()), `${address} ${JSON.stringify(init)}: ${told}`);
}

const json = { 'content-type': 'application/json' };
const good = JSON.stringify({ query: '{__typename}' });

test('a marker in a body comes back in no answer', async () => {
  const bodies = [
    `{"query":"${marker}`,
    `["${marker}"]`,
    `{"${marker}":1}`,
    { query: '{__typename}', operationName: marker },
    { query: '{__typename}', extensions: { persistedQuery: { sha256Hash: marker } } },
    { query: '{__typename}', extensions: { [marker]: marker } },
    { query: '{__typename}', documentId: marker },
    { query: '{__typename}', variables: { [marker]: marker } },
    { query: '{__typename}', variables: marker },
    { query: `{${marker}` },
    { query: `"${marker}"` },
    { query: 'query($x: Role) { __typename @skip(if: false) }', variables: { x: marker } },
    { query: 'query($x: Int) { __typename @skip(if: false) }', variables: { x: marker } },
    { query: 'mutation($i: LoginInput!) { login(input: $i) { userErrors { message } } }', variables: { i: { account: marker, password: marker } } },
    { query: 'mutation($i: LoginInput!) { login(input: $i) { userErrors { message } } }', variables: { i: { account: `${marker}\0`, password: `${marker}\0` } } },
  ].map((body) => (typeof body === 'string' ? body : JSON.stringify(body)));
  for (const body of bodies) {
    for (const accept of ['application/json', 'application/graphql-response+json', 'text/event-stream']) {
      await assertNotEchoed(graphqlURL, { method: 'POST', headers: { ...json, accept }, body });
    }
  }
  for (const type of [marker, `application/json; charset=${marker}`, `multipart/form-data; boundary=${marker}`, 'application/x-www-form-urlencoded']) {
    await assertNotEchoed(graphqlURL, { method: 'POST', headers: { 'content-type': type }, body: `query=${marker}` });
  }
});

test('a marker in a header comes back in no answer', async () => {
  const names = [
    'x-request-id', 'user-agent', 'cookie', 'referer', 'accept-language', 'accept', 'x-forwarded-for', 'x-forwarded-proto', 'forwarded', 'x-real-ip', 'origin',
    'if-none-match', 'traceparent', 'tracestate', 'apollographql-client-name', 'x-seckill-session', 'sandbox-signature', 'range', marker,
  ];
  const tokens = [`Bearer ${marker}`, `Bearer e30.e30.${marker}`, marker, `Basic ${marker}`];
  const headers = [
    ...names.map((name) => ({ [name]: name === 'x-request-id' ? `${marker} {}` : marker })), // a valid request id is echoed and logged on purpose
    ...tokens.map((authorization) => ({ authorization })),
    { cookie: `seckill_refresh=${marker}`, 'x-seckill-session': 'cookie' },
    { 'content-encoding': marker },
  ];
  for (const header of headers) {
    await assertNotEchoed(graphqlURL, { method: 'POST', headers: { ...json, ...header }, body: good });
    await assertNotEchoed(`${graphqlURL}?query={__typename}`, { headers: header });
    await assertNotEchoed(`${graphqlURL}?query={__typename}`, { headers: { accept: 'text/event-stream', ...header } });
    await assertNotEchoed(url, { headers: header });
    await assertNotEchoed(`${url}/webhooks/payments/sandbox`, { method: 'POST', headers: header, body: '{}' });
  }
});

test('a marker in a URL comes back in no answer', async () => {
  for (const name of ['query', 'operationName', 'variables', 'extensions', 'documentId', marker]) {
    for (const value of [marker, `{${marker}`, `{"${marker}":"${marker}"}`]) {
      const search = new URLSearchParams({ query: '{__typename}', [name]: value });
      await assertNotEchoed(`${graphqlURL}?${search}`);
      await assertNotEchoed(`${graphqlURL}?${search}`, { headers: { accept: 'text/event-stream' } });
    }
  }
  const places = ['', '/', '/x/', '/x//', '/assets', '/playground', '/webhooks', '/webhooks/payments', '/webhooks/payments//', '/sandbox', '/sandbox/pay', '/media', '/exports', '/graphql'];
  for (const place of places) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'M4RK3R']) {
      await assertNotEchoed(`${url}${place}/${marker}?${marker}=${marker}`, { method, body: method === 'POST' ? marker : undefined });
      await assertNotEchoed(`${url}${place}?${marker}`, { method });
    }
  }
  await assertNotEchoed(`${url}/exports/orders.csv?sale=${marker}`);
  await assertNotEchoed(`${url}/sandbox/pay/${marker}/approve`, { method: 'POST' });
});

test('a marker in a webhook, an upload or invalid HTTP comes back in no answer', async () => {
  for (const signature of [marker, `t=${marker},v1=${marker}`, `t=1,v1=${marker}`, `t=${Math.floor(Date.now() / 1000)},v1=${'00'.repeat(32)}`]) {
    for (const body of [marker, `{"id":"${marker}","type":"${marker}","payment":"${marker}"}`]) {
      await assertNotEchoed(`${url}/webhooks/payments/sandbox`, { method: 'POST', headers: { ...json, 'sandbox-signature': signature }, body });
    }
  }
  const authorization = await adminAuthorization();
  for (const headers of [{ 'content-type': 'image/png' }, { 'content-type': 'image/png', authorization }, { 'content-type': marker, authorization }]) {
    await assertNotEchoed(`${url}/media/`, { method: 'POST', headers, body: marker });
  }
  for (const text of [`${marker}\r\n\r\n`, `GET / ${marker}\r\n\r\n`, `GET / HTTP/1.1\r\nHost: ${marker}/ {}\r\n\r\n`, `GET / HTTP/1.1\r\n${marker} ${marker}\r\n\r\n`,
    `POST /graphql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${marker}\r\n\r\n`, `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: ${marker}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: x\r\nExpect: ${marker}\r\n\r\n`, `GET /%zz${marker} HTTP/1.1\r\nHost: x\r\n\r\n`]) {
    const told = await raw(text);
    assert.ok(!told.includes(marker), `${text}: ${told}`);
  }
});

function raw(text) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let told = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.setTimeout(500, () => socket.end());
    socket.on('data', (data) => (told += data));
    socket.on('close', () => resolve(told));
    socket.on('error', () => {});
  });
}

test('a marker in the variables of an operation comes back in no answer', async () => {
  const authorization = await adminAuthorization();
  for (const operation of operations()) {
    for (const headers of [{}, { authorization }]) {
      for (const fitting of [true, false]) {
        const body = await send(operation.hash, values(operation, fitting), headers);
        const told = JSON.stringify(serverTexts(body)); // stored data may be returned as data
        assert.ok(!told.includes(marker), `${operation.name} ${fitting}: ${told}`);
        assert.ok(!told.includes('INTERNAL'), `${operation.name} ${fitting}: ${told}`);
      }
    }
  }
});

test('a marker sent over a WebSocket comes back in no answer', async () => {
  const init = (payload) => ({ type: 'connection_init', payload });
  const frames = [
    [`{"type":"${marker}"}`], [marker], [`{"type":"ping","payload":"${marker}"}`], [init({ authorization: `Bearer ${marker}` })], [init({ authorization: marker })],
    [init({ authorization: { [marker]: marker } })], [init(marker)], [init({ [marker]: marker }), init()], [init(), { type: 'ping', payload: { [marker]: marker } }, init()],
    ...operations().map(({ hash, ...operation }) => [
      init(),
      { id: '1', type: 'subscribe', payload: { variables: values(operation, true), extensions: { persistedQuery: { version: 1, sha256Hash: hash } } } },
      { id: '2', type: 'subscribe', payload: { query: `"${marker}"`, operationName: marker } },
      { id: '3', type: 'subscribe', payload: { query: '{__typename}', variables: { [marker]: marker }, operationName: marker } },
      { type: 'complete', id: marker },
      { type: marker },
    ]),
  ];
  for (const list of frames) {
    const socket = new Socket();
    for (const frame of list) await socket.send(frame);
    for (;;) {
      const event = await socket.next();
      const told = JSON.stringify(serverTexts(event.message ?? event));
      assert.ok(!told.includes(marker), `${JSON.stringify(list)}: ${told}`);
      if (!event.message) break;
    }
  }
  const stranger = new Socket([marker]); // the server has to accept the only offered subprotocol, so that the client sees the close code
  assert.ok(!(await stranger.closed()).reason.includes(marker));
  for (const header of ['sec-websocket-key', 'sec-websocket-version', 'origin', 'connection']) {
    await assertNotEchoed(socketURL.replace('ws', 'http'), { headers: { upgrade: 'websocket', 'sec-websocket-protocol': marker, [header]: marker } }).catch((error) => {
      if (error instanceof assert.AssertionError) throw error; // fetch itself forbids some
    });
  }
});
