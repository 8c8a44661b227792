/**
 * Live state. A subscription uses a WebSocket; where that is blocked,
 * server-sent events; where those are blocked too, polling.
 * Each subscription starts with the full state, so subscribing again resumes it,
 * and the reader drops revisions that it already has.
 */
import { lang } from '../i18n/lang';
import { connection, backoff, jitter } from './connection';
import { readEvents } from './events';
import { Fault, faultOf, toFault, type GraphQLFault } from './fault';
import { body } from './post';
import { bearer, onSwitch, person, refused } from './session';
import type { Socket } from './socket';
import type { Doc } from './tada';

/** Consecutive failures of one event stream after which event streams count as blocked. */
const BLOCKED_AFTER = 2;
/** Browsers open six connections to a host at most (HTTP/1.1); requests need some of them. */
const MAX_EVENT_STREAMS = 3;
const PROBE_MS = 30_000;
/** Consecutive faults after which a stream is polled instead. */
const MAX_FAULTS = 4;

/** The consumer of a stream. */
export interface Sink<R> {
  /** Takes a state; returns whether it is the last one. */
  next(data: R): boolean;
  /** The stream failed permanently. */
  failed(fault: Fault): void;
  /** Reads the state once; returns the delay of the next poll in ms, or null after the last state. */
  poll(): Promise<number | null>;
}

type Transport = 'socket' | 'events' | 'poll';
let transport: Transport = 'socket';
let socket: Socket | null = null;
/** The WebSocket client is loaded after the first paint, which does not need it. */
const client = () => import('./socket');
const streams = new Set<Stream>();

class Stream {
  #stop: () => void = () => {};
  #faults = 0;
  #ends = 0;
  #broken = 0;
  #asking = false;

  constructor(
    readonly payload: Record<string, unknown>,
    readonly sink: Sink<never>,
  ) {}

  /** Subscribes over the current transport. */
  start(): void {
    this.#stop();
    this.#asking = false;
    const wanted = transport === 'events' && this.#rank() >= MAX_EVENT_STREAMS ? 'poll' : transport;
    switch (wanted) {
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
    streams.delete(this);
    if (!streams.size) connection.value = { state: 'idle' };
  }

  /** Subscribes again, with growing delays, after the server completed the stream without a last state. */
  #ended(): void {
    this.#later(backoff(++this.#ends));
  }

  #rank(): number {
    return [...streams].indexOf(this);
  }

  #later(ms: number): void {
    this.#stop();
    const timer = setTimeout(() => this.start(), ms);
    this.#stop = () => clearTimeout(timer);
  }

  #take(result: { data?: unknown; errors?: unknown }): void {
    if (Array.isArray(result.errors)) return this.#fault(faultOf(result.errors as GraphQLFault[]));
    this.#faults = this.#broken = 0;
    if (this.sink.next(result.data as never)) this.end();
  }

  #fault(fault: Fault): void {
    const expired = fault.code === 'UNAUTHENTICATED' && person.peek() !== null;
    if (expired) void bearer().then((token) => (refused(token), socket?.reconnect()), () => {});
    const again = fault.passing || expired || fault.code === 'INTERNAL';
    if (again && ++this.#faults <= MAX_FAULTS) return this.#later(Math.max(fault.retryAfterMs, backoff(this.#faults)));
    if (!this.#asking) return this.#askInstead();
    if (again) return this.#later(backoff(this.#faults));
    this.end();
    this.sink.failed(fault);
  }

  /** Polls for a while, then subscribes again. */
  #askInstead(): void {
    this.#stop();
    const quiet = this.#byPoll();
    const timer = setTimeout(() => this.start(), jitter(PROBE_MS));
    this.#stop = () => (clearTimeout(timer), quiet());
  }

  #bySocket(): () => void {
    let over = false;
    let stop = (): void => {};
    const begin = ({ Socket }: Awaited<ReturnType<typeof client>>): void => {
      if (over) return;
      socket ??= new Socket(() => fall('events'));
      stop = socket.subscribe(this.payload, {
        next: (result) => over || this.#take(result),
        error: (thrown) => {
          if (over) return;
          over = true;
          if (Array.isArray(thrown)) this.#fault(faultOf(thrown as GraphQLFault[]));
          else fall('events');
        },
        complete: () => over || this.#ended(),
      });
    };
    client().then(begin, () => over || fall('events'));
    return () => {
      over = true;
      stop();
    };
  }

  #byEvents(): () => void {
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const token = await bearer();
        await readEvents(this.payload, token, abort.signal, {
          open: () => {
            this.#broken = 0;
            connection.value = { state: 'live' };
          },
          next: (result) => abort.signal.aborted || this.#take(result as object),
        });
        if (!abort.signal.aborted) this.#ended();
      } catch {
        if (abort.signal.aborted) return;
        if (++this.#broken > BLOCKED_AFTER) return fall('poll');
        const wait = backoff(this.#broken);
        connection.value = { state: 'retrying', at: performance.now() + wait };
        this.#later(wait);
      }
    };
    void read();
    return () => abort.abort();
  }

  #byPoll(): () => void {
    this.#asking = true;
    let over = false;
    let timer: ReturnType<typeof setTimeout>;
    let tries = 0;
    const ask = async (): Promise<void> => {
      let wait: number | null;
      try {
        wait = await this.sink.poll();
        if (over) return;
        tries = 0;
        connection.value = { state: 'polling' };
      } catch (thrown) {
        if (over) return;
        if (!toFault(thrown).passing) return this.#fault(toFault(thrown));
        wait = backoff(++tries);
        connection.value = { state: 'retrying', at: performance.now() + wait };
      }
      if (wait === null) return this.end();
      timer = setTimeout(() => void ask(), jitter(wait));
    };
    void ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }
}

function fall(next: Transport): void {
  if (transport === next || transport === 'poll') return;
  take(next);
  const timer = setInterval(() => {
    if (transport === 'socket') return clearInterval(timer);
    if (streams.size) void probe().then((works) => works && transport !== 'socket' && take('socket'), () => {});
  }, PROBE_MS);
}

async function probe(): Promise<boolean> {
  return (await client()).probe();
}

function take(next: Transport): void {
  transport = next;
  // The socket may be the caller: it is disposed of last.
  const old = socket;
  socket = null;
  for (const stream of [...streams]) stream.start();
  old?.dispose();
}

/** Follows a subscription until its last state or until the returned function is called. */
export function follow<R, V>(doc: Doc<R, V>, variables: V, sink: Sink<R>): () => void {
  const stream = new Stream(body(doc, variables), sink as unknown as Sink<never>);
  streams.add(stream);
  stream.start();
  return () => stream.end();
}

/** Subscribes to everything again at once: after sleep, a change of network or of user. */
export function renew(): void {
  if (transport === 'socket') socket?.reconnect();
  else for (const stream of [...streams]) stream.start();
}

onSwitch(renew);
// Texts of the server are in the language of the subscription. The connection is not lost, so no loss is shown.
lang.subscribe(() => take(transport));
