// What a client sends comes back in no answer; the runner looks for it in the log.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Socket, graphqlURL, url } from '../../server.mjs';

const marker = 'm4rk3r-in-the-input';

test('a marker planted in every input is found in no answer', async () => {
  const inputs = [
    { body: `{"query":"${marker}` },
    { body: JSON.stringify({ query: '{__typename}', operationName: marker }) },
    { body: JSON.stringify({ query: '{__typename}', extensions: { persistedQuery: { sha256Hash: marker } } }) },
    { body: JSON.stringify({ query: '{__typename}', documentId: marker }) },
    { body: JSON.stringify({ query: '{__typename}', variables: { [marker]: marker } }) },
    { body: JSON.stringify({ query: '{__typename}', variables: marker }) },
    { body: JSON.stringify({ query: 'query($x: Role) { __typename @skip(if: false) }', variables: { x: marker } }) },
    { body: JSON.stringify({ query: 'mutation($i: LoginInput!) { login(input: $i) { userErrors { message } } }', variables: { i: { account: marker, password: marker } } }) },
    { body: '{"query":"{__typename}"}', headers: { authorization: `Bearer ${marker}` } },
    { body: '{"query":"{__typename}"}', headers: { 'x-request-id': `${marker} {}`, 'user-agent': marker, cookie: marker, referer: marker } },
    { body: '{"query":"{__typename}"}', headers: { 'accept-language': marker, accept: `${marker}/x`, 'x-forwarded-for': marker } },
  ];
  for (const { body, headers } of inputs) {
    const response = await fetch(`${graphqlURL}?${marker}=${marker}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    const told = (await response.text()) + JSON.stringify([...response.headers]);
    assert.ok(!told.includes(marker), `${body}: ${told}`);
  }
  const page = await fetch(`${url}/${marker}?${marker}`);
  assert.ok(!(await page.text()).includes(marker));
});

test('nor over a socket', async () => {
  for (const frame of [`{"type":"${marker}"}`, marker, { type: 'connection_init', payload: { authorization: `Bearer ${marker}` } }]) {
    const socket = new Socket();
    await socket.send(frame);
    const { reason } = await socket.closed();
    assert.ok(!reason.includes(marker), reason);
  }
});
