/**
 * Live state. A subscription uses a WebSocket; where that is blocked,
 * server-sent events; where those are blocked too, polling.
 * Each subscription starts with the full state, so subscribing again resumes it,
 * and the reader drops revisions that it already has.
 */
import { signal, type Signal } from '@preact/signals-core';
import { backoff, jitter } from './backoff.ts';
import { readEvents } from './events.ts';
import { toFault, type Fault, type GraphQLFault } from './fault.ts';
import { body, type Http } from './http.ts';
import type { Doc } from './operation.ts';
import type { Session } from './session.ts';
import type { Socket } from './socket.ts';

/** Consecutive failures of one event stream after which event streams count as blocked. */
const BLOCKED_AFTER = 2;
/** Browsers open six connections to a host at most (HTTP/1.1); requests need some of them. */
const MAX_EVENT_STREAMS = 3;
const PROBE_MS = 30_000;
/** Consecutive faults after which a stream is polled instead. */
const MAX_FAULTS = 4;

/** The state of the live connection. `at` is the time of the next attempt, in ms of performance.now(). */
export type Connection =
  | { state: 'idle' }
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'retrying'; at: number }
  | { state: 'polling' };

/** The consumer of a stream. */
export interface Sink<R> {
  /** Takes a state; returns whether it is the last one. */
  next(data: R): boolean;
  /** The stream failed permanently. */
  failed?(fault: Fault): void;
  /**
   * Reads the state once; returns the delay of the next poll in ms, or null after the last state. Without it nothing is polled. The signal is
   * aborted when the stream ends or starts again: a request that has it then throws, so that no late answer is taken.
   */
  poll?(signal: AbortSignal): Promise<number | null>;
}

type Transport = 'socket' | 'events' | 'poll';
/** The WebSocket client is loaded with the first stream. */
const loadSocket = () => import('./socket.ts');

/** All streams of a client. They share one WebSocket. */
export class Live {
  /** How live data arrives. */
  readonly connection: Signal<Connection> = signal({ state: 'idle' });
  readonly streams = new Set<Stream>();
  transport: Transport;
  #socket: Socket | null = null;

  constructor(
    readonly http: Http,
    readonly session: Session,
  ) {
    this.transport = http.webSocket ? 'socket' : 'events';
  }

  /** Follows a subscription until its last state or until the returned function is called. */
  follow<R, V>(doc: Doc<R, V>, variables: V, sink: Sink<R>): () => void {
    const stream = new Stream(this, body(doc, variables), sink as unknown as Sink<never>);
    this.streams.add(stream);
    stream.start();
    return () => stream.end();
  }

  /** Subscribes to everything again at once: after sleep, a change of network or of user. */
  renew(): void {
    if (this.transport === 'socket') this.#socket?.reconnect();
    else for (const stream of [...this.streams]) stream.start();
  }

  /** Subscribes to everything again after a change of the language. A WebSocket is replaced, because the language is sent when it connects. */
  restart(): void {
    this.#switchTo(this.transport);
  }

  /** The shared socket. */
  async socket(): Promise<Socket> {
    const { Socket } = await loadSocket();
    return (this.#socket ??= new Socket(this, () => this.fallBack('events')));
  }

  /** Connects the socket again, after its token expired. */
  reconnect(): void {
    this.#socket?.reconnect();
  }

  /** Uses the next transport, and tries WebSockets again from time to time. */
  fallBack(next: Transport): void {
    if (this.transport === next || this.transport === 'poll') return;
    this.#switchTo(next);
    const timer = setInterval(() => {
      if (this.transport === 'socket' || !this.http.webSocket) return clearInterval(timer);
      if (this.streams.size) void this.#probe().then((works) => works && this.transport !== 'socket' && this.#switchTo('socket'), () => {});
    }, PROBE_MS);
    unref(timer);
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of [...this.streams]) stream.end();
    this.#socket?.dispose();
    this.#socket = null;
  }

  async #probe(): Promise<boolean> {
    return (await loadSocket()).probe(this.http);
  }

  #switchTo(next: Transport): void {
    this.transport = next;
    // The socket may be the caller: it is disposed of last.
    const old = this.#socket;
    this.#socket = null;
    for (const stream of [...this.streams]) stream.start();
    old?.dispose();
  }
}

/** Lets a process of Node end although a timer runs. */
function unref(timer: unknown): void {
  (timer as { unref?: () => void }).unref?.();
}

class Stream {
  #stop: () => void = () => {};
  #faults = 0;
  #ends = 0;
  #broken = 0;
  #polling = false;

  constructor(
    readonly live: Live,
    readonly payload: Record<string, unknown>,
    readonly sink: Sink<never>,
  ) {}

  /** Subscribes over the current transport. */
  start(): void {
    this.#stop();
    this.#polling = false;
    const { transport } = this.live;
    const many = transport === 'events' && this.#rank() >= MAX_EVENT_STREAMS;
    switch (this.sink.poll ? (many ? 'poll' : transport) : transport === 'poll' ? 'events' : transport) {
      case 'socket':
        this.#stop = this.#bySocket();
        break;
      case 'events':
        this.#stop = this.#byEvents();
        break;
      case 'poll':
        this.#stop = this.#byPoll();
    }
  }

  end(): void {
    this.#stop();
    this.#stop = () => {};
    this.live.streams.delete(this);
    if (!this.live.streams.size) this.live.connection.value = { state: 'idle' };
  }

  /** Subscribes again, with growing delays, after the server completed the stream without a last state. */
  #ended(): void {
    this.#restartIn(backoff(++this.#ends));
  }

  #rank(): number {
    return [...this.live.streams].indexOf(this);
  }

  #restartIn(ms: number): void {
    this.#stop();
    const timer = setTimeout(() => this.start(), ms);
    this.#stop = () => clearTimeout(timer);
  }

  #take(result: { data?: unknown; errors?: unknown }): void {
    if (Array.isArray(result.errors)) return this.#fault(this.live.http.faultOf(result.errors as GraphQLFault[]));
    this.#faults = this.#broken = 0;
    if (this.sink.next(result.data as never)) this.end();
  }

  #fault(fault: Fault): void {
    const { session } = this.live;
    const expired = fault.code === 'UNAUTHENTICATED' && session.signedIn();
    if (expired) void session.token().then((token) => (session.refused(token), this.live.reconnect()), () => {});
    const again = fault.transient || expired || fault.code === 'INTERNAL';
    if (again && ++this.#faults <= MAX_FAULTS) return this.#restartIn(Math.max(fault.retryAfterMs, backoff(this.#faults)));
    if (!this.#polling && this.sink.poll) return this.#pollTemporarily();
    if (again) return this.#restartIn(backoff(this.#faults));
    this.end();
    this.sink.failed?.(fault);
  }

  /** Polls for a while, then subscribes again. */
  #pollTemporarily(): void {
    this.#stop();
    const quiet = this.#byPoll();
    const timer = setTimeout(() => this.start(), jitter(PROBE_MS));
    this.#stop = () => (clearTimeout(timer), quiet());
  }

  #bySocket(): () => void {
    let over = false;
    let stop = (): void => {};
    const begin = (socket: Socket): void => {
      if (over) return;
      stop = socket.subscribe(this.payload, {
        next: (result) => over || this.#take(result),
        error: (thrown) => {
          if (over) return;
          over = true;
          if (Array.isArray(thrown)) this.#fault(this.live.http.faultOf(thrown as GraphQLFault[]));
          else this.live.fallBack('events');
        },
        complete: () => over || this.#ended(),
      });
    };
    this.live.socket().then(begin, () => over || this.live.fallBack('events'));
    return () => {
      over = true;
      stop();
    };
  }

  #byEvents(): () => void {
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const token = await this.live.session.token();
        await readEvents(this.live.http, this.payload, token, abort.signal, {
          open: () => {
            this.#broken = 0;
            this.live.connection.value = { state: 'live' };
          },
          next: (result) => abort.signal.aborted || this.#take(result as object),
        });
        if (!abort.signal.aborted) this.#ended();
      } catch {
        if (abort.signal.aborted) return;
        if (++this.#broken > BLOCKED_AFTER && this.sink.poll) return this.live.fallBack('poll');
        const wait = backoff(this.#broken);
        this.live.connection.value = { state: 'retrying', at: performance.now() + wait };
        this.#restartIn(wait);
      }
    };
    void read();
    return () => abort.abort();
  }

  #byPoll(): () => void {
    this.#polling = true;
    const abort = new AbortController();
    const { signal } = abort;
    let timer: ReturnType<typeof setTimeout>;
    let tries = 0;
    const ask = async (): Promise<void> => {
      let wait: number | null;
      try {
        wait = await this.sink.poll!(signal);
        if (signal.aborted) return;
        tries = 0;
        this.live.connection.value = { state: 'polling' };
      } catch (thrown) {
        if (signal.aborted) return;
        if (!toFault(thrown).transient) return this.#fault(toFault(thrown));
        wait = backoff(++tries);
        this.live.connection.value = { state: 'retrying', at: performance.now() + wait };
      }
      if (wait === null) return this.end();
      timer = setTimeout(() => void ask(), jitter(wait));
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }
}
