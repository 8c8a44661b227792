import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SaleStock } from '@seckill/client/documents/sale';

/** Each connection for events as the server sees it. */
let streams: { at: number; send(text: string): void; cut(): void }[];
let asked: number;
let pills: string[];

/** Subscribes with WebSockets blocked, in a new client that has not detected this yet. */
async function follow(): Promise<() => void> {
  vi.resetModules();
  const { connection, follow } = await import('../src/api/client');
  connection.subscribe(({ state }) => pills.push(state));
  const sink = { next: () => false, failed: () => {}, poll: () => Promise.resolve((asked++, 1_000)) };
  return follow(SaleStock, { id: 'sal_1' }, sink);
}

async function pass(seconds: number): Promise<void> {
  for (let s = 0; s < seconds; s++) {
    await vi.dynamicImportSettled();
    await vi.advanceTimersByTimeAsync(1_000);
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  [streams, asked, pills] = [[], 0, []];
  class Blocked {
    onclose = (_: object): void => {};
    constructor() {
      queueMicrotask(() => this.onclose({ code: 1006 }));
    }
    close(): void {}
  }
  vi.stubGlobal('WebSocket', Blocked);
  vi.stubGlobal('fetch', async (_url: string, { signal }: RequestInit) => {
    const body = new ReadableStream<Uint8Array>({
      start: (held) => {
        let over = false;
        const cut = (): void => {
          if (!over) held.error(new TypeError('network error'));
          over = true;
        };
        signal!.addEventListener('abort', cut);
        streams.push({ at: Date.now(), send: (text) => over || held.enqueue(new TextEncoder().encode(text)), cut });
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('where WebSockets are blocked', () => {
  test('and a proxy passes the headers of events but not the events, the page asks instead, and never calls itself live', async () => {
    const stop = await follow();
    await pass(60);
    stop();
    expect(streams).toHaveLength(3);
    expect(asked).toBeGreaterThan(1);
    expect(pills).not.toContain('live');
  });

  test('a change of language while the page connects leaves no unhandled rejection when that connection is refused', async () => {
    const refused: (() => void)[] = [];
    class Pending {
      onclose = (_: object): void => {};
      constructor() {
        refused.push(() => this.onclose({ code: 1006 }));
      }
      close(): void {}
    }
    vi.stubGlobal('WebSocket', Pending);
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const stop = await follow();
    await pass(1);
    expect(refused).toHaveLength(1);
    (await import('../src/api/client')).client.restart();
    refused[0]!();
    await pass(1);
    vi.useRealTimers();
    await new Promise((resolve) => setImmediate(resolve)); // Node reports rejections after a tick
    process.off('unhandledRejection', unhandled);
    stop();
    expect(unhandled).not.toHaveBeenCalled();
  });

  test('a stream is open with the first comment, and may then be quiet between two comments', async () => {
    const stop = await follow();
    await pass(10);
    expect(streams).toHaveLength(1);
    streams[0]!.send(':\n\n');
    await pass(1);
    expect(pills.at(-1)).toBe('live');
    await pass(40);
    streams[0]!.send(':\n\n');
    await pass(40);
    expect(streams).toHaveLength(1);
    await pass(10); // now it is silent for too long
    expect(streams).toHaveLength(2);
    stop();
  });

  test('a stream of nothing but comments that is cut now and then stays a stream', async () => {
    const stop = await follow();
    await pass(10);
    for (let n = 1; n <= 6; n++) {
      expect(streams).toHaveLength(n);
      streams.at(-1)!.send(':\n\n');
      await pass(1);
      expect(pills.at(-1)).toBe('live');
      streams.at(-1)!.cut();
      await pass(4);
    }
    stop();
    expect(asked).toBe(0);
  });
});
