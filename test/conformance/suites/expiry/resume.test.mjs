// Token expiry in mid-stream: every stream of a stock graphql-ws client resumes
// by itself.
import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { anySale, data, password, waitTimeout, signIn, socketURL } from '../../server.mjs';

const streams = 100;
const perSocket = 20;
const accounts = ['alice@demo.example', 'bob@demo.example', 'operator@demo.example', 'admin@demo.example', 'alice@demo.example'];

async function lifeOfTokens() {
  const { login, serverInfo } = {
    ...(await data('{ serverInfo { serverTime } }')),
    ...(await data('mutation($input: LoginInput!) { login(input: $input) { tokens { accessTokenExpiresAt } } }', {
      input: { account: accounts[0], password },
    })),
  };
  return Date.parse(login.tokens.accessTokenExpiresAt) - Date.parse(serverInfo.serverTime);
}

test('100 of 100 streams resume after their token has expired', { timeout: 2 * waitTimeout }, async () => {
  const tokenLife = await lifeOfTokens();
  assert.ok(tokenLife <= 30_000, 'start the server with SECKILL_ACCESS_TOKEN_TTL=10s');
  const sale = await anySale();
  const query = `subscription { saleStatus(saleId: "${sale}") { kind } }`;
  const closes = [];
  const snapshots = Array(streams).fill(0);
  const ended = [];
  const clients = accounts.map((account) =>
    createClient({
      url: socketURL,
      webSocketImpl: WebSocket,
      connectionParams: async () => ({ authorization: `Bearer ${await signIn(account)}` }),
      on: { closed: (event) => closes.push(event.code) },
    }),
  );
  const resumed = new Promise((resolve) => {
    for (let i = 0; i < streams; i++) {
      clients[Math.floor(i / perSocket)].subscribe(
        { query },
        {
          next: ({ data }) => {
            if (data.saleStatus.kind === 'SNAPSHOT') snapshots[i]++;
            if (snapshots.every((n) => n >= 2)) resolve();
          },
          error: (error) => ended.push(`${i}: error ${JSON.stringify(error)}`),
          complete: () => ended.push(`${i}: complete`),
        },
      );
    }
  });
  const late = new Promise((resolve) => {
    setTimeout(resolve, tokenLife + waitTimeout).unref();
  });
  await Promise.race([resumed, late]);
  assert.deepEqual(ended, []);
  assert.equal(snapshots.filter((n) => n >= 2).length, streams);
  assert.ok(closes.includes(4403), String(closes));
  // 4408: the sign-in inside of connectionParams took longer than a socket may stay
  // without connection_init. 1006: the connection broke. The client connects again.
  assert.deepEqual(closes.filter((code) => ![4403, 4408, 1006].includes(code)), []);
  await Promise.all(clients.map((client) => client.dispose()));
});
