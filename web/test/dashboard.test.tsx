import { render } from 'preact';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { Dashboard } from '../src/operator/dashboard';
import { REACH_S, type Point } from '../src/operator/figures';
import { hasGaps, merge } from '../src/operator/series';
import { stubWebSocket, T0, type StubStream } from './shop';

let plotted: Point[] = [];
vi.mock('../src/operator/plot', () => ({ Plot: ({ series }: { series: Point[] }) => ((plotted = series), null) }));

const iso = (s: number): string => new Date(T0 + s * 1000).toISOString();
const point = (s: number, left = 0): Point => ({ at: T0 / 1000 + s, requests: 1, orders: 1, left });

/** The figures at a second, with the number of remaining units. */
const stats = (s: number, left: number) => ({
  at: iso(s), conserved: true, totalUnits: 100, remainingUnits: left, pendingUnits: 100 - left, paidUnits: 0,
  countedSince: null, captchas: 0, paths: 0, requests: 0, accepted: 0, orders: 0, paidOrders: 0, expiredOrders: 0, refundedOrders: 0,
  p99Ms: 1, queueDepth: 0, queueAgeSeconds: 0, requestsPerSecond: 1, ordersPerSecond: 1,
  unpaidUnits: 100 - left, offeredUnits: 0, waitingBuyers: 0, items: [], netValue: { amount: '1.00', currencyCode: 'CNY' }, gate: [],
});

/** A full response: the figures at second s, and one point for each second from since to s. */
const whole = (s: number, left: number, since: number) => {
  const series = Array.from({ length: s - since }, (_, i) => ({ at: iso(since + i), requests: 1, orders: 1, remainingUnits: left }));
  return { sale: { id: 'sal_1', saleStats: { ...stats(s, left), series } } };
};

/** Requests that the server has not answered yet, and how many there were. */
let open: ((data: object | 'cut') => Promise<void>)[] = [];
let asks = 0;
const streams: StubStream[] = [];
let div: HTMLElement;

const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
  await vi.dynamicImportSettled();
  await vi.advanceTimersByTimeAsync(20);
};
const show = async (live: boolean, id = 'sal_1'): Promise<void> => {
  render(<Dashboard id={id} live={live} opening={iso(0)} />, div);
  await pass(100);
};
/** A frame comes in. */
const frame = async (s: number, left: number): Promise<void> => {
  streams.filter(({ name }) => name === 'FiguresLive').at(-1)!.say({ saleStats: { saleStats: stats(s, left) } });
  await pass(20);
};
const left = (): string | undefined => div.querySelector('dd')?.textContent;
const seconds = (): number[] => plotted.map(({ at }) => at - T0 / 1000);

let person = 0;
beforeEach(() => {
  vi.useFakeTimers({ now: T0 });
  [open, asks, plotted, streams.length] = [[], 0, [], 0];
  stubWebSocket(streams);
  vi.stubGlobal('fetch', (_url: string, { signal }: RequestInit) => {
    asks++;
    return new Promise<Response>((done, fail) => {
      signal!.addEventListener('abort', () => fail(new DOMException('', 'AbortError')));
      open.push(async (data) => {
        if (data === 'cut') fail(new TypeError('Failed to fetch'));
        else done(new Response(JSON.stringify({ data }), { headers: { 'content-type': 'application/json' } }));
        await pass(20);
      });
    });
  });
  const tokens = { accessToken: 'a', accessTokenExpiresAt: iso(3600) };
  startSession(tokens, { id: `usr_${++person}`, displayName: 'A', account: 'a', role: 'ADMIN' }); // nothing is kept from another test
  div = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  render(null, div);
  div.remove();
  await pass(3_000); // the socket closes when nothing is followed for a while
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('figures whose counts were lost say since when they count', async () => {
  await show(false);
  const countedFrom = (countedSince: string | null) => {
    const answer = whole(60, 50, 0);
    return { sale: { ...answer.sale, saleStats: { ...answer.sale.saleStats, countedSince } } };
  };
  await open.pop()!(countedFrom(iso(1)));
  expect(div.textContent).toContain('100');
  expect(div.querySelector('p.note time')).toBeNull();
  render(null, div);
  await show(false, 'sal_2');
  await open.pop()!(countedFrom(iso(42)));
  expect(div.querySelector('p.note time')!.getAttribute('datetime')).toBe(iso(42));
});

describe('a series', () => {
  test('has one point a second, the latest given, in order, and reaches back five minutes', () => {
    const series = merge([point(1, 9), point(5, 5)], [point(0), point(1, 8), point(2)]);
    expect(series).toEqual([point(0), point(1, 8), point(2), point(5, 5)]);
    const long = merge(series, Array.from({ length: 400 }, (_, s) => point(s)));
    expect(long).toHaveLength(REACH_S);
    expect(long[0]).toEqual(point(100));
    expect(merge([], [])).toEqual([]);
  });
  test('has a gap where a second is missing', () => {
    expect([[], [point(7)], [point(1), point(2)], [point(1), point(3)]].map(hasGaps)).toEqual([false, false, false, true]);
  });
});

describe('the dashboard of a running sale', () => {
  test('does not go back to an answer that frames overtook, but shows the seconds before it', async () => {
    await show(true);
    await frame(1, 90);
    await frame(2, 80);
    await open[0]!(whole(1, 100, -3));
    expect(left()).toBe('80');
    expect(seconds()).toEqual([-3, -2, -1, 0, 1, 2]);
    expect(plotted.at(-1)!.left).toBe(80);
  });

  test('requests the seconds missed during a lost connection once', async () => {
    await show(true);
    await open[0]!(whole(0, 100, -3));
    for (let s = 1; s < 4; s++) await frame(s, 70);
    expect(asks).toBe(1);
    for (let s = 33; s < 36; s++) await frame(s, 10); // the answer takes its time
    expect(asks).toBe(2);
    await open[1]!(whole(35, 10, -3));
    expect(seconds()).toEqual(Array.from({ length: 39 }, (_, i) => i - 3));
    for (let s = 36; s < 60; s++) await frame(s, 10);
    expect(asks).toBe(2);
    expect(left()).toBe('10');
  });

  test('limits its requests when frames are always late', async () => {
    await show(true);
    await open[0]!(whole(0, 100, -3));
    for (let s = 2; s <= 40; s += 2) {
      await frame(s, 70);
      if (asks > 1) await open.at(-1)!(whole(s, 70, -3));
    }
    expect(asks).toBe(5); // at 2, 12 and so on
  });

  test('starts again with another sale', async () => {
    await show(true);
    await open[0]!(whole(0, 100, -3));
    await show(true, 'sal_2');
    expect(left()).toBeUndefined();
    await open[1]!(whole(-60, 50, -63));
    expect(left()).toBe('50');
    expect(seconds()).toEqual([-63, -62, -61, -60]);
  });
});

describe('the dashboard of a sale that is over', () => {
  test('says that the figures did not come, and asks again', async () => {
    await show(false);
    await open[0]!('cut');
    expect(div.querySelector('[role=alert]')).not.toBeNull();
    await pass(5_000);
    expect(asks).toBe(2);
    await open[1]!({ sale: { id: 'sal_1', saleStats: null } }); // only a part of the answer failed
    expect(div.querySelector('[role=alert]')).not.toBeNull();
    await pass(5_000);
    await open[2]!(whole(0, 40, -3));
    expect(left()).toBe('40');
    expect(div.querySelector('[role=alert]')).toBeNull();
    await pass(60_000);
    expect(asks).toBe(3);
  });

  test('asks for what it ended with', async () => {
    await show(true);
    await open[0]!(whole(0, 100, -3));
    await frame(1, 90);
    await show(false);
    expect(left()).toBe('90');
    await open[1]!(whole(2, 80, -3));
    expect(left()).toBe('80');
  });
});
