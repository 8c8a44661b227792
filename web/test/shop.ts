/** Shared test helpers: a sale, and stubs of the server behind fetch and WebSocket. */
import { vi } from 'vitest';
import type { Sale } from '@seckill/client/types';

/** An instant to count from. */
export const T0 = Date.parse('2026-11-20T12:00:00.000Z');

const at = (seconds: number): string => new Date(T0 + seconds * 1000).toISOString();

/** A live sale of one item; the fields given replace its own. */
export function sale(fields: Partial<Sale> = {}): Sale {
  const money = { amount: '299.00', currencyCode: 'CNY' };
  return {
    id: 'sal_1',
    slug: 'one',
    title: 'One',
    phase: 'LIVE',
    startsAt: at(-60),
    endsAt: at(3600),
    nextTransitionAt: at(3600),
    revision: 1,
    serverTime: at(0),
    drawOpensAt: at(-660),
    mode: 'RUSH',
    entriesCloseAt: null,
    authorizesEntries: false,
    purchaseLimit: null,
    paymentWindowSeconds: 900,
    requiresAddress: false,
    limitBy: ['ACCOUNT'],
    access: [],
    rules: '',
    notice: null,
    accent: null,
    items: [
      {
        id: 'itm_1',
        price: money,
        purchaseLimit: 1,
        drawing: null,
        goods: { id: 'gds_1', name: 'Thing', imageUrl: null, imageAlt: null, listPrice: money, description: '' },
        stock: { level: 'PLENTY', remaining: 10, total: 10, revision: 1, updatedAt: at(0) },
      },
    ],
    viewer: null,
    ...fields,
  };
}

/** One request as the server saw it. */
export interface SentRequest {
  name: string;
  variables: { input: Record<string, unknown> };
}

/** What the server answers: data, a network failure, or an answer that never comes. */
export type Reply = Record<string, unknown> | 'cut' | 'never';

/** Stands in for the server behind fetch; answers each operation by the next reply of its list. */
export function server(replies: Record<string, Reply[]>): SentRequest[] {
  const asked: SentRequest[] = [];
  vi.stubGlobal('fetch', async (_url: string, init: RequestInit) => {
    const { operationName: name, variables } = JSON.parse(init.body as string);
    asked.push({ name, variables });
    const reply = replies[name]?.shift();
    if (!reply) throw new Error(`no reply left for ${name}`);
    if (reply === 'cut') throw new TypeError('Failed to fetch');
    if (reply === 'never') return new Promise(() => {});
    return new Response(JSON.stringify({ data: reply }), { headers: { 'content-type': 'application/json' } });
  });
  return asked;
}

/** A subscription as the server sees it: its operation, and functions that send events. */
export interface StubStream {
  name: string;
  variables: Record<string, unknown>;
  open: boolean;
  say(data: Record<string, unknown>): void;
  /** Ends it with an error. */
  fail(code: string): void;
}

/** Stands in for the server behind a WebSocket (graphql-transport-ws); adds each stream that is asked for. */
export function stubWebSocket(streams: StubStream[]): void {
  class StubSocket extends EventTarget {
    static readonly OPEN = 1;
    readonly protocol = 'graphql-transport-ws';
    readyState = 1;
    onopen = (): void => {};
    onmessage = (_: { data: string }): void => {};
    onclose = (_: object): void => {};
    readonly #open = new Map<string, StubStream>();
    constructor() {
      super();
      queueMicrotask(() => this.onopen());
    }
    #say(message: object): void {
      this.onmessage({ data: JSON.stringify(message) });
    }
    send(text: string): void {
      const { id, type, payload } = JSON.parse(text);
      if (type === 'connection_init') queueMicrotask(() => this.#say({ type: 'connection_ack' }));
      if (type === 'complete') this.#open.get(id)!.open = false;
      if (type !== 'subscribe') return;
      const { operationName: name, variables } = payload;
      const stream = {
        name, variables, open: true,
        say: (data: object) => this.#say({ id, type: 'next', payload: { data } }),
        fail: (code: string) => this.#say({ id, type: 'error', payload: [{ message: '', extensions: { code } }] }),
      };
      this.#open.set(id, stream);
      streams.push(stream);
    }
    close(): void {
      this.readyState = 3;
      this.onclose({ code: 1000, wasClean: true });
    }
  }
  vi.stubGlobal('WebSocket', StubSocket);
}
