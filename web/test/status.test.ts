import { beforeAll, expect, test } from 'vitest';
import type { Viewer } from '@seckill/client/types';
import { setLanguage } from '../src/i18n/text';
import { Fault } from '@seckill/client/fault';
import { tasks } from '../src/api/stores';
import type { Attempt } from '@seckill/client/purchase';
import { buttonOf, DRAW_MS, type Situation } from '../src/purchase/button';
import { statusOf, WARN_MS } from '../src/purchase/status';
import { sale, T0 } from './shop';

beforeAll(() => setLanguage('en'));

const at = (ms: number): string => new Date(T0 + ms).toISOString();
const idle: Attempt = { step: 'idle' };

function statusAt(fields: Partial<Situation>) {
  const it = fields.sale ?? sale();
  const situation: Situation = { sale: it, itemId: 'itm_1', stock: it.items[0]!.stock, signedIn: true, attempt: idle, now: T0, ...fields };
  const button = buttonOf(situation);
  return { kind: button.kind, ...statusOf(situation, button) };
}

const upcoming = (ms: number) => sale({ phase: 'UPCOMING', startsAt: at(ms) });
const viewer = (fields: Partial<Viewer>): Viewer => ({
  action: 'BUY',
  disabledReason: null,
  items: [],
  order: null,
  orderTask: null,
  queueTicket: null,
  waitlistEntry: null,
  ...fields,
});
const order = (status: 'PENDING_PAYMENT' | 'PAID', ms: number) =>
  ({ id: 'ord_1', status, number: 'n', revision: 1, paymentDeadline: at(ms), total: { amount: '299.00', currencyCode: 'CNY' }, item: { id: 'itm_1' } }) as const;

test('before the opening the draw can be joined from four minutes before, and the countdown is to the opening', () => {
  expect(statusAt({ sale: upcoming(DRAW_MS + 1) })).toMatchObject({ kind: 'wait', title: 'Opens in', detail: 'You can join the draw from four minutes before it opens.', until: T0 + DRAW_MS + 1, strict: false });
  expect(statusAt({ sale: upcoming(DRAW_MS - 1) })).toMatchObject({ kind: 'join', title: 'Opens in' });
  expect(statusAt({ sale: upcoming(9_000) })).toMatchObject({ kind: 'join', title: 'Get ready' });
  expect(statusAt({ sale: upcoming(9_000), verified: true })).toMatchObject({ kind: 'wait', detail: 'Verified. One press buys when it opens.' });
  expect(statusAt({ sale: upcoming(9_000), signedIn: false })).toMatchObject({ kind: 'sign-in', until: T0 + 9_000 });
});

test('to a visitor an item that is sold out is not on sale', () => {
  const none = { ...sale().items[0]!.stock, level: 'SOLD_OUT', remaining: 0 } as const;
  expect(statusAt({ stock: none, signedIn: false })).toMatchObject({ kind: 'sign-in', title: 'Sold out – units may return' });
  expect(statusAt({ sale: upcoming(9_000), stock: none, signedIn: false })).toMatchObject({ title: 'Get ready' });
});

test('a turn and an offer count down strictly', () => {
  const turn: Attempt = { step: 'admitted', itemId: 'itm_1', path: { token: 'p', expiresAt: at(60_000) } };
  expect(statusAt({ attempt: turn })).toMatchObject({ kind: 'buy', title: 'Your turn', until: T0 + 60_000, strict: true });
  const waitlistEntry = { id: 'wle_1', status: 'OFFERED', ahead: 0, offerExpiresAt: at(60_000), item: { id: 'itm_1' } } as const;
  expect(statusAt({ sale: sale({ viewer: viewer({ waitlistEntry }) }) })).toMatchObject({ kind: 'buy', title: 'Reserved for you', strict: true });
});

test('an order that awaits payment counts down strictly and warns near its deadline', () => {
  const pay = (ms: number) => statusAt({ sale: sale({ viewer: viewer({ action: 'PAY', order: order('PENDING_PAYMENT', ms) }) }) });
  expect(pay(900_000)).toMatchObject({ kind: 'pay', title: 'You got it!', until: T0 + 900_000, strict: true, tone: 'good' });
  expect(pay(WARN_MS - 1)).toMatchObject({ tone: 'warn' });
  expect(statusAt({ sale: sale({ viewer: viewer({ action: 'VIEW_ORDER', order: order('PAID', 0) }) }) })).toMatchObject({ kind: 'order', title: 'Paid' });
});

test('a pause shows the notice of the shop, and a lost answer says that trying again is safe', () => {
  expect(statusAt({ sale: sale({ phase: 'PAUSED', notice: 'Back at noon.' }) })).toMatchObject({ title: 'Paused by the shop', detail: 'Back at noon.', tone: 'warn' });
  expect(statusAt({ attempt: { step: 'broken', fault: new Fault('NETWORK', '') } })).toMatchObject({
    kind: 'buy',
    detail: 'No response. Try again – you will not be charged twice.',
    tone: 'danger',
  });
});

test('a pause is called the same, signed in or out', () => {
  const reason = viewer({ action: 'NONE', disabledReason: 'The sale is held for a moment.' });
  for (const signed of [sale({ phase: 'PAUSED', viewer: reason }), sale({ phase: 'PAUSED' })]) expect(statusAt({ sale: signed })).toMatchObject({ title: 'Paused by the shop' });
  expect(statusAt({ sale: sale({ viewer: reason }) })).toMatchObject({ title: 'The sale is held for a moment.' });
});

test('a refusal by a sale that is open again is not shown any more', () => {
  const failure = { __typename: 'SaleNotOpenError', code: 'SALE_CLOSED', message: '', path: null, phase: 'PAUSED' } as never;
  expect(statusAt({ attempt: { step: 'refused', failure } })).toMatchObject({ kind: 'buy', title: 'On sale now' });
  expect(statusAt({ sale: sale({ phase: 'PAUSED' }), attempt: { step: 'refused', failure } })).toMatchObject({ tone: 'danger' });
});

test('a task that no worker ends is said to take longer', () => {
  const orderTask = { id: 'otk_1', status: 'SUBMITTED', revision: 2, delayed: true, quantity: 1 } as Viewer['orderTask'];
  const waiting = viewer({ action: 'WATCH_QUEUE', orderTask });
  expect(statusAt({ sale: sale({ viewer: waiting }) })).toMatchObject({ kind: 'queue', detail: expect.stringContaining('longer than usual') });
  const attempt: Attempt = { step: 'queued', taskId: 'otk_2' };
  expect(statusAt({ attempt })).toMatchObject({ detail: expect.stringContaining('Creating your order') });
  tasks.put('otk_2', { ...orderTask!, id: 'otk_2' });
  expect(statusAt({ attempt })).toMatchObject({ detail: expect.stringContaining('longer than usual') });
});
