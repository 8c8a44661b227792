import type { Signal } from '@preact/signals-core';
import { Clock } from './clock.ts';
import { toFault } from './fault.ts';
import { Http, type HttpOptions } from './http.ts';
import { Live, type Connection, type Sink } from './live.ts';
import type { Doc } from './operation.ts';
import { signedOut, type Session } from './session.ts';
import { kept, type Kept } from './storage.ts';

/** Dependencies of a Client. */
export interface Parts {
  http: Http;
  /** Signed out without it. */
  session?: Session;
  /** Keeps idempotency keys and waiting-room tickets across reloads; default: sessionStorage. */
  store?: Kept;
  clock?: Clock;
}

/** A client of one server: requests, live data, and the server's clock. */
export class Client {
  readonly http: Http;
  readonly session: Session;
  readonly store: Kept;
  readonly clock: Clock;
  readonly #live: Live;

  constructor({ http, session = signedOut, store, clock }: Parts) {
    this.http = http;
    this.session = session;
    this.store = store ?? kept(() => sessionStorage);
    this.clock = clock ?? new Clock(http);
    this.#live = new Live(http, session);
  }

  /** How live data arrives now. */
  get connection(): Signal<Connection> {
    return this.#live.connection;
  }

  /**
   * Sends one operation as the signed-in user. An expired token is
   * refreshed and the operation sent once more: it was refused before anything
   * was done. Throws a Fault, and the reason of the signal once it is aborted,
   * also where the answer has arrived.
   */
  async request<R, V>(doc: Doc<R, V>, variables: V, signal?: AbortSignal): Promise<R> {
    const token = await this.session.token();
    let data: R;
    try {
      data = await this.http.post(doc, variables, token, signal);
    } catch (thrown) {
      signal?.throwIfAborted();
      if (!token || toFault(thrown).code !== 'UNAUTHENTICATED') throw thrown;
      this.session.refused(token);
      data = await this.http.post(doc, variables, await this.session.token(), signal);
    }
    signal?.throwIfAborted();
    return data;
  }

  /** Follows a subscription until its last state or until the returned function is called. */
  follow<R, V>(doc: Doc<R, V>, variables: V, sink: Sink<R>): () => void {
    return this.#live.follow(doc, variables, sink);
  }

  /** Subscribes to everything again at once: after sleep, a change of network or of user. */
  renew(): void {
    this.#live.renew();
  }

  /** Subscribes to everything again after a change of the language. */
  restart(): void {
    this.#live.restart();
  }

  /** Ends all streams and connections. */
  close(): void {
    this.#live.close();
  }
}

/** A client of the API at `url`. */
export function createClient(options: HttpOptions & Omit<Parts, 'http'>): Client {
  const { session, store, clock, ...http } = options;
  return new Client({ http: new Http(http), ...(session && { session }), ...(store && { store }), ...(clock && { clock }) });
}
