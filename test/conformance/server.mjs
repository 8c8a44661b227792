// The server under test, as the environment names it.
import assert from 'node:assert/strict';
import WebSocket from 'ws';

export const url = process.env.SECKILL_URL ?? 'http://127.0.0.1:8080';
export const graphqlURL = `${url}/graphql`;
export const socketURL = graphqlURL.replace(/^http/, 'ws');
export const production = process.env.SECKILL_PROFILE === 'production';
export const password = process.env.SECKILL_PASSWORD ?? 'flash-sale-demo';

/** Posts an operation and returns {status, headers, body}. */
export async function post(query, variables, headers = {}) {
  const response = await fetch(graphqlURL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The data of an operation that must succeed. */
export async function data(query, variables, headers) {
  const { body } = await post(query, variables, headers);
  assert.equal(body.errors, undefined, JSON.stringify(body.errors));
  return body.data;
}

/** Signs in and returns an access token. */
export async function signIn(account) {
  const { login } = await data(
    'mutation($input: LoginInput!) { login(input: $input) { tokens { accessToken } userErrors { code } } }',
    { input: { account, password } },
  );
  assert.deepEqual(login.userErrors, []);
  return login.tokens.accessToken;
}

/** Returns the id of a public sale. */
export async function anySale() {
  const { sales } = await data('{ sales(first: 1) { edges { node { id } } } }');
  return sales.edges[0].node.id;
}

/** Timeout of a wait, in ms; long, for slow machines. */
export const waitTimeout = 120_000;

/** A raw WebSocket that queues received messages and can send invalid frames. */
export class Socket {
  constructor(protocols = ['graphql-transport-ws'], headers = {}) {
    this.ws = new WebSocket(socketURL, protocols, { headers });
    this.queue = [];
    this.waiting = [];
    this.ws.on('message', (m) => this.#put({ message: JSON.parse(m.toString()) }));
    this.ws.on('close', (code, reason) => this.#put({ close: code, reason: reason.toString() }));
    this.ws.on('error', (error) => this.#put({ error }));
    this.opened = new Promise((resolve) => this.ws.on('open', resolve));
  }

  #put(event) {
    const waiter = this.waiting.shift();
    if (waiter) waiter(event);
    else this.queue.push(event);
  }

  /** The next message, close or error. */
  next(within = waitTimeout) {
    if (this.queue.length > 0) return Promise.resolve(this.queue.shift());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('nothing came')), within);
      this.waiting.push((event) => {
        clearTimeout(timer);
        resolve(event);
      });
    });
  }

  async send(message) {
    await this.opened;
    this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  async message() {
    const event = await this.next();
    assert.ok(event.message, `wanted a message, got ${JSON.stringify(event)}`);
    return event.message;
  }

  /** Skips messages and returns the close event. */
  async closed() {
    for (;;) {
      const event = await this.next();
      if (event.close !== undefined) return event;
      assert.ok(!event.error, String(event.error));
    }
  }

  /** Fails if another message arrives before the pong to a ping. */
  async assertIdle() {
    await this.send({ type: 'ping' });
    assert.deepEqual(await this.message(), { type: 'pong' });
  }

  static async acknowledged(payload) {
    const socket = new Socket();
    await socket.send({ type: 'connection_init', payload });
    assert.deepEqual(await socket.message(), { type: 'connection_ack' });
    return socket;
  }

  end() {
    this.ws.terminate();
  }
}
