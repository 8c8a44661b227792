/** The states of the client over answers that are late, lost, sent twice, or in another order: none goes back. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Client } from '@seckill/client/client';
import type { Sink } from '@seckill/client/live';
import { followOrder, payOrder } from '@seckill/client/order';
import { Purchase } from '@seckill/client/purchase';
import { PasswordSession } from '@seckill/client/session';
import { followTask } from '@seckill/client/task';
import type { Entry, Order, Sale, Task, Ticket, Viewer } from '@seckill/client/types';
import { Waiting } from '@seckill/client/waiting';
import { clock, sync } from '../src/api/clock';
import { bearer, currentUser, refused, startSession } from '../src/api/session';
import { tabStore } from '../src/api/storage';
import { orders, putSale, putWaitlistEntry, sales, stocks, viewerTime } from '../src/api/stores';
import '../src/purchase/attempt';
import { buttonOf, type Button } from '../src/purchase/button';
import { currentSale } from '../src/purchase/current';
import { sale, T0 } from './shop';

const at = (ms: number): string => new Date(T0 + ms).toISOString();
const signIn = (id: string): void =>
  startSession({ accessToken: `a-${id}`, accessTokenExpiresAt: at(36_000_000) }, { id, displayName: 'A', account: 'a', role: 'CUSTOMER' });
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers({ now: T0 });
  sessionStorage.clear();
  signIn('usr_1');
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** States of one object in some order, some twice: their indexes. */
const deliveries = (states: number) => fc.array(fc.nat({ max: states - 1 }), { minLength: 1, maxLength: 12 });

/** A client whose streams and polls answer when the test says so. */
function heldClient(): { client: Client; sink: () => Sink<never>; answers: ((data: object) => void)[] } {
  let sink: Sink<never>;
  const answers: ((data: object) => void)[] = [];
  const client = {
    follow: (_doc: unknown, _variables: unknown, given: Sink<never>) => ((sink = given), () => {}),
    request: () => new Promise<object>((resolve) => answers.push(resolve)),
    store: tabStore,
    clock,
  } as unknown as Client;
  return { client, sink: () => sink, answers };
}

const orderAt = (revision: number, status: Order['status'] = 'PENDING_PAYMENT') =>
  ({ id: 'ord_1', number: 'n', revision, status, paymentDeadline: at(900_000), total: { amount: '1.00', currencyCode: 'CNY' }, item: { id: 'itm_1' } }) as const;
const taskAt = (n: number): Task => {
  const done = n === 2;
  return { id: 'tsk_1', status: done ? 'SUCCEEDED' : 'SUBMITTED', revision: n + 1, quantity: 1, item: { id: 'itm_1' }, order: done ? orderAt(1) : null, failure: null, delayed: n === 1, createdAt: at(0), pollAfterMs: 100 } as unknown as Task;
};

describe('an object that is followed by pushes and polls', () => {
  test('never goes back, and ends once: a task', async () => {
    await fc.assert(
      fc.asyncProperty(deliveries(3), fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), async (states, byPoll) => {
        const { client, sink, answers } = heldClient();
        const seen: number[] = [];
        let ends = 0;
        followTask(client, 'tsk_1', { next: (task) => seen.push(task.revision), ended: () => ends++, lost: () => ends++ });
        for (const [n, state] of states.entries()) {
          const orderTask = { ...taskAt(state), queue: null };
          if (!byPoll[n]) sink().next({ orderTaskStatus: { orderTask } } as never);
          else {
            const poll = sink().poll!(new AbortController().signal);
            answers.pop()!({ orderTask });
            await poll;
          }
        }
        expect(seen).toEqual([...seen].sort());
        expect(ends).toBe(states.includes(2) ? 1 : 0);
      }),
    );
  });

  test('never goes back: an order', () => {
    fc.assert(
      fc.property(deliveries(4), (states) => {
        const { client, sink } = heldClient();
        const seen: number[] = [];
        followOrder(client, 'ord_1', ({ revision }) => void seen.push(revision));
        for (const state of states) sink().next({ orderStatus: { order: orderAt(state, state === 3 ? 'CANCELLED' : 'PAID') } } as never);
        expect(seen).toEqual([...seen].sort());
      }),
    );
  });

  test('never goes back, and ends once: a ticket of the waiting room', () => {
    fc.assert(
      fc.property(deliveries(5), (states) => {
        const { client, sink } = heldClient();
        const ends: (Ticket | null)[] = [];
        const waiting = new Waiting(client, 'tkt_1', (ticket) => ends.push(ticket));
        const shown: (string | undefined)[] = [];
        for (const state of states) {
          const over = state === 4;
          const position = over ? null : { ahead: 10 - state, wait: null, chancePercent: null, updatedAt: at(state) };
          sink().next({ queuePosition: { ticket: { id: 'tkt_1', status: over ? 'CLOSED' : 'WAITING', position, path: null, endReason: null, item: { id: 'itm_1' } } } } as never);
          shown.push(waiting.ticket.value?.status === 'CLOSED' ? at(9) : waiting.ticket.value?.position?.updatedAt);
        }
        expect(shown).toEqual([...shown].sort());
        expect(ends).toHaveLength(states.includes(4) ? 1 : 0);
      }),
    );
  });
});

test('a payment that was begun is not begun again, whenever the answers arrive, or if they are lost', async () => {
  const step = fc.record({ act: fc.constantFrom('press', 'press', 'close', 'answer', 'answer', 'lose'), n: fc.nat({ max: 5 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 24 }), async (steps) => {
      sessionStorage.clear();
      const begun = new Map<string, { status: 'PENDING' | 'CLOSED' }>(); // at the server, by idempotency key
      const held: { resolve: (data: object) => void; reject: (why: Error) => void; data: object }[] = [];
      const client = {
        request: (_doc: unknown, { input }: { input: { idempotencyKey: string } }) => {
          const payment = begun.get(input.idempotencyKey) ?? { status: 'PENDING' };
          begun.set(input.idempotencyKey, payment);
          const data = { payOrder: { order: null, userErrors: [], payment: { ...payment } } };
          return new Promise<object>((resolve, reject) => held.push({ resolve, reject, data }));
        },
        store: tabStore,
      } as unknown as Client;
      for (const { act, n } of steps) {
        if (act === 'press') void payOrder(client, 'ord_1', 'card').catch(() => {});
        else if (act === 'close') for (const payment of begun.values()) payment.status = 'CLOSED';
        else {
          const [reply] = held.splice(n % Math.max(held.length, 1), 1);
          if (act === 'answer') reply?.resolve(reply.data);
          else reply?.reject(new TypeError('Failed to fetch'));
        }
        await pass(0);
        expect([...begun.values()].filter(({ status }) => status === 'PENDING').length).toBeLessThanOrEqual(1);
      }
    }),
    { numRuns: 60 },
  );
});

/** How far a buyer is, by the button. */
const progress: Partial<Record<Button['kind'], number>> = { buy: 0, checking: 0, sending: 1, queue: 2, pay: 3, order: 4 };

/** The button of the page now. */
function shown(purchase: Purchase): Button {
  const read = sales.of('sal_1').value!;
  const attempt = purchase.attempt.value;
  const readAt = viewerTime('sal_1');
  const known = currentSale(read, attempt, readAt);
  return buttonOf({ sale: known, itemId: 'itm_1', stock: stocks.of('itm_1').value!, quantity: 1, signedIn: true, attempt, now: clock.now(), readAt });
}

/** A server with one buyer: what was asked of it, and each state with its time. */
class Shop {
  taken: number | null = null;
  written: number | null = null;
  paid: number | null = null;
  constructor(readonly write: number, readonly pay: number) {}

  place(): void {
    this.taken ??= Date.now();
    this.written ??= this.taken + this.write;
    this.paid ??= this.written + this.pay;
  }
  viewer(): Viewer {
    const base: Viewer = { action: 'BUY', disabledReason: null, access: null, items: [{ item: { id: 'itm_1' }, remainingLimit: 1, order: null, waitlistEntry: null }], order: null, orderTask: null, queueTicket: null, waitlistEntry: null };
    if (this.taken === null) return base;
    if (Date.now() < this.written!) return { ...base, action: 'WATCH_QUEUE', orderTask: taskAt(0) as never };
    const paid = Date.now() >= this.paid!;
    return { ...base, action: paid ? 'VIEW_ORDER' : 'PAY', order: orderAt(paid ? 2 : 1, paid ? 'PAID' : 'PENDING_PAYMENT') };
  }
  task(): Task {
    return taskAt(this.taken !== null && Date.now() >= this.written! ? 2 : 0);
  }
  sale(): Sale {
    return { ...sale(), viewer: this.viewer(), serverTime: new Date().toISOString() };
  }
}

test('a purchase never goes back, whenever its answers and the readings of the sale arrive', { timeout: 600_000 }, async () => {
  const delay = fc.integer({ min: 0, max: 3_000 });
  await fc.assert(
    fc.asyncProperty(
      fc.record({ delays: fc.infiniteStream(delay), lost: fc.infiniteStream(fc.integer({ min: 0, max: 9 })), write: delay, pay: fc.integer({ min: 1, max: 9_000 }), press: delay, everyMs: fc.integer({ min: 50, max: 900 }) }),
      async ({ delays, lost, write, pay, press, everyMs }) => {
        vi.setSystemTime(T0);
        sessionStorage.clear();
        for (const store of [sales, orders]) store.clear();
        signIn('usr_0'); // forgets what is known of the last user
        signIn('usr_1');
        const shop = new Shop(write, pay);
        const late = async <T>(work: () => T, mayFail: boolean): Promise<T> => {
          await new Promise((resolve) => setTimeout(resolve, delays.next().value!));
          const data = work();
          await new Promise((resolve) => setTimeout(resolve, delays.next().value!));
          if (mayFail && lost.next().value! > 7) throw new TypeError('Failed to fetch');
          return data;
        };
        const answer = (name: string): object => {
          switch (name) {
            case 'IssuePath':
              return { issueSeckillPath: { path: { token: 'p1', expiresAt: new Date(Date.now() + 600_000).toISOString() }, userErrors: [] } };
            case 'PlaceOrder':
              shop.place();
              return { placeOrder: { orderTask: shop.task(), replayed: false, userErrors: [] } };
            case 'Task':
              return { orderTask: shop.taken === null ? null : { ...shop.task(), queue: null } };
            case 'Clock':
              return { serverInfo: { serverTime: new Date().toISOString() } };
            default:
              throw new Error(name);
          }
        };
        vi.stubGlobal('fetch', (_url: string, init: RequestInit) => {
          const name = JSON.parse(init.body as string).operationName as string;
          return late(() => answer(name), name !== 'Clock').then((data) => new Response(JSON.stringify({ data })));
        });
        const { Client } = await import('@seckill/client/client');
        const { http } = await import('../src/api/http');
        const client = new Client({ http, store: tabStore, clock, session: { signedIn: () => true, token: () => Promise.resolve('t'), refused: () => {} } });
        client.follow = (_doc, _variables, sink) => {
          const end = new AbortController();
          const poll = async (): Promise<void> => {
            if (end.signal.aborted) return;
            const wait = await sink.poll!(end.signal).catch(() => 500);
            if (wait === null) return end.abort();
            setTimeout(() => void poll(), wait);
            void poll2(); // a second answer overtakes the first one
          };
          const poll2 = (): Promise<unknown> => sink.poll!(end.signal).then((wait) => wait === null && end.abort(), () => {});
          void poll();
          return () => end.abort();
        };
        const read = (): void => void late(() => shop.sale(), false).then(putSale);
        const purchase = new Purchase(client, 'sal_1', { changed: read });
        putSale(shop.sale());
        void sync();
        const timer = setInterval(read, everyMs);
        setTimeout(() => {
          purchase.buy('itm_1', 1);
          purchase.answer({ challengeId: 'c', answer: '1', expires: T0 + 900_000, early: false });
        }, press);
        let most = 0;
        const kinds: string[] = [];
        for (let ms = 0; ms < 60_000 && most < 4; ms += 50) {
          await pass(50);
          const { kind } = shown(purchase);
          if (kinds.at(-1) !== kind) kinds.push(kind);
          const now = progress[kind];
          expect(now, kinds.join(' ')).toBeDefined();
          if (purchase.attempt.value.step === 'broken') break; // 30 s without an answer
          expect(now, kinds.join(' → ')).toBeGreaterThanOrEqual(most);
          most = now!;
        }
        clearInterval(timer);
        purchase.close();
        vi.clearAllTimers();
      },
    ),
    { numRuns: 60 },
  );
});

test('a reading that may be older than the order does not hide it', () => {
  const { client, sink } = heldClient();
  clock.reading.value = { offset: T0 - performance.now(), bound: 1_500 };
  const purchase = new Purchase(client, 'sal_1', {});
  purchase.queued('tsk_1');
  sink().next({ orderTaskStatus: { orderTask: { ...taskAt(2), queue: null } } } as never);
  const shop = new Shop(0, 0);
  const action = (readAt: number) => currentSale(shop.sale(), purchase.attempt.value, T0 + readAt).viewer!.action;
  expect([action(0), action(1_499), action(1_501)]).toEqual(['PAY', 'PAY', 'BUY']);
  purchase.close();
  clock.reading.value = null;
});

test('a place on the waitlist never goes back, whenever the readings of the sale arrive', () => {
  const entry = (status: Entry['status']): Entry => ({ id: 'wle_1', status, ahead: 0, offerExpiresAt: null, quantity: 1, rank: null, card: null, item: { id: 'itm_1' } });
  const reading = (ms: number, place: Entry | null): Sale => {
    const open = place && ['WAITING', 'OFFERED'].includes(place.status) ? place : null;
    const viewer: Viewer = { action: 'BUY', disabledReason: null, access: null, items: [{ item: { id: 'itm_1' }, remainingLimit: 1, order: null, waitlistEntry: open }], order: null, orderTask: null, queueTicket: null, waitlistEntry: place };
    return { ...sale(), serverTime: at(ms), viewer };
  };
  const history = [null, entry('WAITING'), entry('OFFERED'), entry('EXPIRED')];
  fc.assert(
    fc.property(deliveries(4), (states) => {
      for (const store of [sales]) store.clear();
      signIn('usr_0');
      signIn('usr_1');
      const shown = states.map((state) => {
        putSale(reading(state, history[state]!));
        return history.findIndex((place) => place?.status === sales.of('sal_1').value!.viewer!.waitlistEntry?.status);
      });
      expect(shown).toEqual([...shown].sort());
    }),
  );
  putSale(reading(0, null));
  clock.reading.value = { offset: T0 + 5_000 - performance.now(), bound: 1 };
  putWaitlistEntry('sal_1', entry('LEFT'));
  putSale(reading(4_000, entry('WAITING'))); // read before the buyer left
  expect(sales.of('sal_1').value!.viewer!.waitlistEntry!.status).toBe('LEFT');
  clock.reading.value = null;
});

describe('what belongs to a user', () => {
  const renewed = { refreshSession: { tokens: { accessToken: 'old', accessTokenExpiresAt: at(3_600_000), refreshToken: 'r1' }, userErrors: [] } };

  test('a refresh that is answered after another user signed in does not bring the last one back', async () => {
    let finish = (): void => {};
    vi.stubGlobal('fetch', () => new Promise((resolve) => (finish = () => resolve(new Response(JSON.stringify({ data: renewed }))))));
    refused('a-usr_1');
    const waiting = bearer();
    await pass(0);
    signIn('usr_2');
    finish();
    expect(await waiting).toBe('a-usr_2');
    expect(currentUser.value!.id).toBe('usr_2');
  });

  test('a refresh that is answered after another sign-in does not replace it', async () => {
    let finish = (): void => {};
    const session = new PasswordSession({
      post: (_doc: unknown, { input }: { input: { account?: string } }) =>
        input.account
          ? Promise.resolve({ login: { tokens: { accessToken: `of-${input.account}`, accessTokenExpiresAt: at(input.account === 'b' ? 3_600_000 : 0), refreshToken: `r-${input.account}` }, userErrors: [] } })
          : new Promise((resolve) => (finish = () => resolve(renewed))),
    } as never);
    await session.signIn('a', 'p');
    const waiting = session.token(); // has expired
    await session.signIn('b', 'p');
    finish();
    expect(await waiting).toBe('of-b');
    expect(await session.token()).toBe('of-b');
  });

  test('an attempt of one user is not continued by the next', () => {
    tabStore.setItem('press:sal_1', '{}');
    tabStore.setItem('place:sal_1', '{}');
    signIn('usr_2');
    expect(tabStore.names().filter((name) => /^(press|place):/.test(name))).toEqual([]);
  });
});
