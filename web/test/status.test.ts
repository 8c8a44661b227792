import { beforeAll, expect, test } from 'vitest';
import type { Viewer } from '@seckill/client/types';
import { moment, setLanguage } from '../src/i18n/text';
import { Fault } from '@seckill/client/fault';
import { tasks } from '../src/api/stores';
import type { Attempt } from '@seckill/client/purchase';
import { buttonOf, type Situation } from '../src/purchase/button';
import { stockAfter } from '../src/purchase/refusal';
import { statusOf, WARN_MS } from '../src/purchase/status';
import { sale, T0 } from './shop';

beforeAll(() => setLanguage('en'));

const at = (ms: number): string => new Date(T0 + ms).toISOString();
const idle: Attempt = { step: 'idle' };
const asked = { itemId: 'itm_1', quantity: 1, at: T0 };

function statusAt(fields: Partial<Situation>) {
  const it = fields.sale ?? sale();
  const situation: Situation = { sale: it, itemId: 'itm_1', stock: it.items[0]!.stock, quantity: 1, signedIn: true, attempt: idle, now: T0, readAt: 0, ...fields };
  const button = buttonOf(situation);
  return { kind: button.kind, ...statusOf(situation, button) };
}

const upcoming = (ms: number) => sale({ phase: 'UPCOMING', startsAt: at(ms) });
const viewer = (fields: Partial<Viewer>): Viewer => ({
  action: 'BUY',
  disabledReason: null,
  access: null,
  items: [],
  order: null,
  orderTask: null,
  queueTicket: null,
  waitlistEntry: null,
  ...fields,
});
const order = (status: 'PENDING_PAYMENT' | 'PAID', ms: number) =>
  ({ id: 'ord_1', status, number: 'n', revision: 1, paymentDeadline: at(ms), total: { amount: '299.00', currencyCode: 'CNY' }, item: { id: 'itm_1' } }) as const;

test('before the opening the draw can be joined as soon as its waiting room is open, and the countdown is to the opening', () => {
  const early = { ...upcoming(3_600_000), drawOpensAt: at(1) };
  expect(statusAt({ sale: early })).toMatchObject({ kind: 'wait', title: 'Opens in', detail: `You can join the draw from ${moment(early.drawOpensAt)}.`, until: T0 + 3_600_000, strict: false });
  expect(statusAt({ sale: { ...early, drawOpensAt: null } })).toMatchObject({ kind: 'wait', detail: 'You can join the draw before it opens.' });
  expect(statusAt({ sale: early, now: T0 + 1 })).toMatchObject({ kind: 'join', title: 'Opens in' });
  expect(statusAt({ sale: upcoming(9_000) })).toMatchObject({ kind: 'join', title: 'Get ready' });
  expect(statusAt({ sale: upcoming(9_000), verified: true })).toMatchObject({ kind: 'wait', detail: 'Verified. One press buys when it opens.' });
  expect(statusAt({ sale: upcoming(9_000), signedIn: false })).toMatchObject({ kind: 'sign-in', until: T0 + 9_000 });
});

test('to a visitor an item that is sold out is not on sale', () => {
  const none = { ...sale().items[0]!.stock, level: 'SOLD_OUT', remaining: 0 } as const;
  expect(statusAt({ stock: none, signedIn: false })).toMatchObject({ kind: 'sign-in', title: 'Sold out – units may return' });
  expect(statusAt({ sale: upcoming(9_000), stock: none, signedIn: false })).toMatchObject({ title: 'Get ready' });
});

test('a draw is entered, not sold out', () => {
  const draw = sale({ mode: 'DRAW', startsAt: at(-1_000), entriesCloseAt: at(60_000) });
  const none = { ...draw.items[0]!.stock, level: 'SOLD_OUT', remaining: 0 } as const;
  expect(statusAt({ sale: draw, signedIn: false })).toMatchObject({ kind: 'sign-in', title: 'Enter the draw', until: T0 + 60_000 });
  expect(statusAt({ sale: draw, signedIn: false, now: T0 + 60_000 })).toMatchObject({ kind: 'sign-in', title: 'Entries are closed' });
  expect(statusAt({ sale: draw, stock: none, signedIn: false })).toMatchObject({ title: 'All units are given out – some may return' });
  const soon = { ...draw, phase: 'UPCOMING', startsAt: at(9_000) } as const;
  expect(statusAt({ sale: soon })).toMatchObject({ kind: 'wait', detail: 'Entries open then. When you enter makes no difference.' });
  expect(statusAt({ sale: soon, signedIn: false })).toMatchObject({ kind: 'sign-in', detail: 'Sign in before it opens, then one press enters.' });
});

test('the sheet says sold out only where the row of the item does, and the other way round', () => {
  const stale = viewer({ action: 'JOIN_WAITLIST' });
  expect(statusAt({ sale: sale({ viewer: stale }) })).toMatchObject({ kind: 'buy' }); // units came back after the viewer was read
  const stock = (updated: number) => ({ ...sale().items[0]!.stock, updatedAt: at(updated) });
  const gone: Attempt = { step: 'refused', failure: { __typename: 'SoldOutError', code: 'SOLD_OUT', message: '', path: null } as never, ...asked };
  expect(stockAfter(gone, 'itm_1', stock(-1))).toMatchObject({ level: 'SOLD_OUT', remaining: 0 });
  expect(stockAfter(gone, 'itm_1', stock(1))).toEqual(stock(1)); // read later
  expect(stockAfter(gone, 'itm_2', stock(-1))).toEqual(stock(-1));
  expect(stockAfter(idle, 'itm_1', stock(-1))).toEqual(stock(-1));
});

test('a turn and an offer count down strictly', () => {
  const turn: Attempt = { step: 'admitted', itemId: 'itm_1', path: { token: 'p', expiresAt: at(60_000) } };
  expect(statusAt({ attempt: turn })).toMatchObject({ kind: 'buy', title: 'Your turn', until: T0 + 60_000, strict: true });
  const waitlistEntry = { id: 'wle_1', status: 'OFFERED', ahead: 0, offerExpiresAt: at(60_000), quantity: 1, rank: null, card: null, item: { id: 'itm_1' } } as const;
  expect(statusAt({ sale: sale({ viewer: viewer({ waitlistEntry, items: [{ item: { id: 'itm_1' }, remainingLimit: 1, order: null, waitlistEntry }] }) }) })).toMatchObject({ kind: 'buy', title: 'Reserved for you', strict: true });
});

test('an order that awaits payment counts down strictly and warns near its deadline', () => {
  const pay = (ms: number) => statusAt({ sale: sale({ viewer: viewer({ action: 'PAY', order: order('PENDING_PAYMENT', ms) }) }) });
  expect(pay(900_000)).toMatchObject({ kind: 'pay', title: 'You got it!', until: T0 + 900_000, strict: true, tone: 'good' });
  expect(pay(WARN_MS - 1)).toMatchObject({ tone: 'warn' });
  expect(statusAt({ sale: sale({ viewer: viewer({ action: 'VIEW_ORDER', order: order('PAID', 0) }) }) })).toMatchObject({ kind: 'order', title: 'Paid' });
});

test('a pause shows the notice of the shop, and a lost answer says that trying again is safe', () => {
  expect(statusAt({ sale: sale({ phase: 'PAUSED', notice: 'Back at noon.' }) })).toMatchObject({ title: 'Paused by the shop', detail: 'Back at noon.', tone: 'warn' });
  expect(statusAt({ attempt: { step: 'broken', fault: new Fault('NETWORK', ''), ...asked } })).toMatchObject({
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
  const failure = { __typename: 'SaleNotOpenError', code: 'SALE_PAUSED', message: '', path: null, phase: 'PAUSED' } as never;
  expect(statusAt({ attempt: { step: 'refused', failure, ...asked } })).toMatchObject({ kind: 'buy', title: 'On sale now' });
  expect(statusAt({ sale: sale({ phase: 'PAUSED' }), attempt: { step: 'refused', failure, ...asked } })).toMatchObject({ tone: 'danger' });
});

test('a turn that passed unused is named, and the buyer may line up again while the sale is open', async () => {
  const passed: Attempt = { step: 'refused', failure: { __typename: 'BasicError', code: 'PATH_INVALID', message: '', path: null }, ...asked };
  expect(statusAt({ attempt: passed })).toMatchObject({ kind: 'buy', title: 'Your turn passed: it was not used in time.', detail: 'You can line up again.' });
  const over = statusAt({ sale: sale({ phase: 'ENDED' }), attempt: passed });
  expect(over).toMatchObject({ title: 'This sale has ended', detail: 'Your turn passed: it was not used in time.' });
  expect(statusAt({ sale: sale({ phase: 'PAUSED', notice: 'Back at noon.' }), attempt: passed })).toMatchObject({ title: 'Paused by the shop', detail: 'Back at noon.' });
  await setLanguage('zh');
  expect(statusAt({ attempt: passed })).toMatchObject({ title: '已轮到您，但您未在规定时间内下单，本次机会已失效。', detail: '您可以重新排队。' });
  await setLanguage('en');
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

test('a refusal is that of its item, and ends with what it says', () => {
  const refused = (failure: object, more: object = {}): Attempt => ({ step: 'refused', failure: { message: '', path: null, ...failure } as never, ...asked, ...more });
  const mine = (remainingLimit: number) => sale({ viewer: viewer({ items: [{ item: { id: 'itm_1' }, remainingLimit, order: null, waitlistEntry: null }] }) });
  const stock = (level: 'LOW' | 'SOLD_OUT', ms: number) => ({ ...sale().items[0]!.stock, level, remaining: 1, updatedAt: at(ms) });
  const ordered = refused({ __typename: 'AlreadyOrderedError', code: 'ALREADY_ORDERED' });
  const limit = refused({ __typename: 'PurchaseLimitError', code: 'PURCHASE_LIMIT_REACHED', limit: 2, remaining: 1, wholeSale: false }, { quantity: 2 });
  const gone = refused({ __typename: 'SoldOutError', code: 'SOLD_OUT' });
  const few = refused({ __typename: 'BasicError', code: 'TOO_FEW_LEFT' }, { quantity: 2 });
  const unsure: Attempt = { step: 'broken', fault: new Fault('NETWORK', ''), ...asked };
  const holds = (fields: Partial<Situation>): boolean => statusAt(fields).tone === 'danger';

  for (const attempt of [ordered, limit, gone, few, unsure]) {
    expect(holds({ attempt, quantity: 2 })).toBe(true);
    expect(holds({ attempt, quantity: 2, itemId: 'itm_2' })).toBe(false);
    expect(holds({ attempt, quantity: 2, sale: sale({ viewer: viewer({ action: 'PAY', order: order('PENDING_PAYMENT', 900_000) }) }) })).toBe(false);
  }
  expect(holds({ attempt: ordered, sale: mine(1), readAt: T0 - 1 })).toBe(true); // read before the refusal
  expect(holds({ attempt: ordered, sale: mine(0), readAt: T0 + 1 })).toBe(true);
  expect(holds({ attempt: ordered, sale: mine(1), readAt: T0 + 1 })).toBe(false); // cancelled in another tab
  expect(holds({ attempt: limit, quantity: 2, sale: mine(1), readAt: T0 + 1 })).toBe(true);
  expect(holds({ attempt: limit, quantity: 1 })).toBe(false);
  expect(holds({ attempt: limit, quantity: 2, sale: mine(2), readAt: T0 + 1 })).toBe(false);
  expect(holds({ attempt: gone, stock: stock('LOW', -1) })).toBe(true);
  expect(holds({ attempt: gone, stock: stock('LOW', 1) })).toBe(false);
  expect(holds({ attempt: few, quantity: 2, stock: stock('LOW', 1) })).toBe(true);
  expect(holds({ attempt: few, quantity: 1, stock: stock('LOW', -1) })).toBe(false);
});

test.each(['en', 'zh'] as const)('a wait names its cause, ticks in minutes, and ends by itself, in %s', async (language) => {
  await setLanguage(language);
  const failure = { __typename: 'RateLimitedError', code: 'RATE_LIMITED', cause: 'EXPIRED_RESERVATIONS', retryAfterMs: 1_224_000, message: '', path: null } as never;
  const attempt: Attempt = { step: 'refused', failure, ...asked };
  const [title, minutes] = language === 'en' ? ['Two orders were not paid in time', /21 minutes\.$/] : ['未按时付款', /21 分钟/];
  expect(statusAt({ attempt })).toMatchObject({ kind: 'blocked', title: expect.stringContaining(title), detail: expect.stringMatching(minutes), until: T0 + 1_224_000 });
  expect(statusAt({ attempt, now: T0 + 1_200_000 }).detail).toMatch(language === 'en' ? /24 seconds/ : /24 秒/);
  expect(statusAt({ attempt, now: T0 + 1_224_000 })).toMatchObject({ kind: 'buy' });
  expect(statusAt({ attempt, itemId: 'itm_2' })).toMatchObject({ kind: 'buy' });
  await setLanguage('en');
});

test('a draw that asks for a card says what is authorized before, and that the buyer is in after', () => {
  const lead = 'Your card is authorized for ¥598 now and charged only if you are drawn.';
  const entry = { id: 'wle_1', status: 'ENTERED', ahead: null, offerExpiresAt: null, quantity: 2, rank: null, item: { id: 'itm_1' } } as const;
  const draw = (waitlistEntry: Viewer['waitlistEntry'], now = T0) => {
    const open = waitlistEntry?.status === 'ENTERED' ? waitlistEntry : null;
    const it = sale({ mode: 'DRAW', entriesCloseAt: at(60_000), authorizesEntries: true, viewer: viewer({ action: open ? 'IN_DRAW' : 'ENTER_DRAW', waitlistEntry, items: [{ item: { id: 'itm_1' }, remainingLimit: 1, order: null, waitlistEntry: open }] }) });
    return statusAt({ sale: it, quantity: 2, now });
  };
  expect(draw(null)).toMatchObject({ kind: 'enter', title: 'Enter the draw', detail: lead });
  expect(draw({ ...entry, card: 'DUE' })).toMatchObject({ kind: 'authorize', title: 'Your entry needs a card', detail: lead, tone: 'warn', until: T0 + 60_000 });
  expect(draw({ ...entry, card: 'AUTHORIZED' })).toMatchObject({ kind: 'entered', title: 'You are in · card authorized', tone: 'good' });
  expect(draw({ ...entry, status: 'LEFT', card: 'LIMIT_REACHED' })).toMatchObject({ kind: 'enter', detail: expect.stringContaining('used up the limit'), tone: 'warn' });
  expect(draw({ ...entry, card: 'DUE' }, T0 + 60_000)).toMatchObject({ kind: 'entered', title: 'Entries are closed' });
});
