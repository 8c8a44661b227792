/** The WebSocket that all streams of the page share (graphql-transport-ws). */
import { createClient, type Client, type FormattedExecutionResult } from 'graphql-ws/client';
import { backoff, jitter } from './backoff.ts';
import type { Http } from './http.ts';
import type { Live } from './live.ts';

/** Failed connects in a row after which the socket counts as blocked. */
const STUCK_AFTER = 3;
const PING_MS = 12_000;
const PONG_MS = 5_000;
const ACK_MS = 8_000;
/** How long a connection may stay signed out while the user is signed in. */
const SIGNED_OUT_MS = 10_000;
/** The server's close code for an expired token. */
const FORBIDDEN = 4403;

/** The events of a stream. */
export interface SocketSink {
  next(result: FormattedExecutionResult<unknown, unknown>): void;
  error(thrown: unknown): void;
  complete(): void;
}

/** A shared socket. `stuck` is called when it cannot be opened. */
export class Socket {
  readonly #client: Client;
  #token: string | null = null;
  #open = false;
  #hurry: () => void = () => {};

  constructor(
    readonly live: Live,
    stuck: () => void,
  ) {
    const { http, session, connection } = live;
    let alive: ReturnType<typeof setTimeout>;
    this.#client = createClient({
      url: () => http.socketUrl,
      ...(http.options.webSocket && { webSocketImpl: http.options.webSocket }),
      lazyCloseTimeout: 2_000,
      keepAlive: PING_MS,
      connectionAckWaitTimeout: ACK_MS,
      retryAttempts: Infinity,
      shouldRetry: () => true,
      connectionParams: async () => {
        // A refresh that fails transiently must not end the streams: the public ones work signed out.
        this.#token = await session.token().catch(() => null);
        if (!this.#token && session.signedIn()) setTimeout(() => this.#token ?? this.reconnect(), jitter(SIGNED_OUT_MS));
        const { language } = http.options;
        return { ...(language && { 'accept-language': language() }), ...(this.#token && { authorization: `Bearer ${this.#token}` }) };
      },
      retryWait: (tries) => {
        if (tries >= STUCK_AFTER) {
          stuck();
          return Promise.resolve();
        }
        const wait = backoff(tries);
        connection.value = { state: 'retrying', at: performance.now() + wait };
        return new Promise((resolve) => {
          this.#hurry = resolve;
          setTimeout(resolve, wait);
        });
      },
      on: {
        connecting: () => {
          if (connection.peek().state === 'idle') connection.value = { state: 'connecting' };
        },
        connected: () => {
          this.#open = true;
          connection.value = { state: 'live' };
        },
        closed: (event) => {
          this.#open = false;
          clearTimeout(alive);
          if ((event as CloseEvent).code === FORBIDDEN) session.refused(this.#token);
        },
        ping: (received) => {
          if (!received) alive = setTimeout(() => this.#client.terminate(), PONG_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(alive);
        },
      },
    });
  }

  /** Starts a stream; returns a function that ends it. */
  subscribe(payload: Record<string, unknown>, sink: SocketSink): () => void {
    if (this.#open) this.live.connection.value = { state: 'live' };
    return this.#client.subscribe({ query: '', ...payload }, sink); // the protocol requires a text, even an empty one
  }

  /** Connects again at once: as another user, or because the connection may be dead. */
  reconnect(): void {
    this.#hurry();
    this.#client.terminate();
  }

  /** Ends everything. */
  dispose(): void {
    Promise.resolve(this.#client.dispose()).catch(() => {}); // a connection that was still being made may fail
  }
}

/** Whether a socket can be opened, tried without any stream. */
export function probe(http: Http): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new http.webSocket!(http.socketUrl, 'graphql-transport-ws');
    const end = (works: boolean): void => {
      socket.onclose = null;
      resolve(works);
      socket.close(1000);
    };
    socket.onopen = () => socket.send('{"type":"connection_init"}');
    socket.onmessage = () => end(true);
    socket.onerror = socket.onclose = () => end(false);
    setTimeout(() => end(false), ACK_MS);
  });
}
