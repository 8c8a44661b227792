import { describe, expect, test } from 'vitest';
import type { Action, Viewer } from '@seckill/client/types';
import { actionOf, buttonOf, phaseAt, type Situation } from '../src/purchase/button';
import { sale, T0 } from './shop';

const minute = 60_000;

function viewer(action: Action, fields: Partial<Viewer> = {}): Viewer {
  return { action, disabledReason: null, access: null, items: [], order: null, orderTask: null, queueTicket: null, waitlistEntry: null, ...fields };
}

/** The fields of a viewer with a waitlist entry. */
const waiting = (waitlistEntry: Viewer['waitlistEntry']): Partial<Viewer> => ({
  waitlistEntry,
  items: ['itm_1', 'itm_2'].map((id) => ({ item: { id }, remainingLimit: 1, order: null, waitlistEntry: waitlistEntry?.item.id === id ? waitlistEntry : null })),
});

function situation(fields: Partial<Situation> = {}): Situation {
  const it = sale();
  return { sale: it, itemId: 'itm_1', stock: it.items[0]!.stock, quantity: 1, signedIn: true, attempt: { step: 'idle' }, now: T0, readAt: 0, ...fields };
}

describe('the phase', () => {
  const soon = sale({ phase: 'UPCOMING', startsAt: new Date(T0 + minute).toISOString() });
  test('opens by the clock without waiting for an event', () => {
    expect(phaseAt(soon, T0)).toBe('UPCOMING');
    expect(phaseAt(soon, T0 + minute)).toBe('LIVE');
  });
  test('ends by the clock', () => expect(phaseAt(sale(), T0 + 61 * minute)).toBe('ENDED'));
  test('stays cancelled', () => expect(phaseAt(sale({ phase: 'CANCELLED' }), T0)).toBe('CANCELLED'));
});

describe('the action', () => {
  test('is the one that the server returned', () => {
    expect(actionOf(situation({ sale: sale({ viewer: viewer('VIEW_ORDER') }) }))).toBe('VIEW_ORDER');
  });
  test.each(['PAUSED', 'ENDED', 'CANCELLED'] as const)('is nothing in a sale that is %s, also before the viewer is read again', (phase) => {
    for (const said of ['BUY', 'WAIT'] as const) expect(actionOf(situation({ sale: sale({ phase, viewer: viewer(said) }) }))).toBe('NONE');
  });

  test('waits for the own time in a sale that is open to others first', () => {
    const from = new Date(T0 + minute).toISOString();
    const it = sale({ phase: 'LIVE', startsAt: new Date(T0).toISOString(), drawOpensAt: new Date(T0 - minute).toISOString(), viewer: viewer('WAIT', { access: { from, rule: { kind: 'ALL', name: null } } }) });
    expect(buttonOf(situation({ sale: it, now: T0 }))).toEqual({ kind: 'wait' });
    expect(buttonOf(situation({ sale: it, now: T0 + minute }))).toEqual({ kind: 'buy' });
  });
  test('is to buy once the clock has passed the opening, whatever was said before', () => {
    const it = sale({ phase: 'UPCOMING', startsAt: new Date(T0).toISOString(), viewer: viewer('WAIT') });
    expect(actionOf(situation({ sale: it, now: T0 - 1 }))).toBe('WAIT');
    expect(actionOf(situation({ sale: it }))).toBe('BUY');
  });
  test('is derived where the server says nothing', () => {
    expect(actionOf(situation())).toBe('BUY');
    expect(actionOf(situation({ signedIn: false }))).toBe('SIGN_IN');
    expect(actionOf(situation({ stock: { ...situation().stock, level: 'SOLD_OUT' } }))).toBe('NONE');
    expect(actionOf(situation({ sale: sale({ phase: 'PAUSED' }) }))).toBe('NONE');
    expect(actionOf(situation({ sale: sale({ phase: 'UPCOMING', startsAt: new Date(T0 + 1).toISOString() }) }))).toBe('WAIT');
  });
  test('of a user who signed out is to sign in, although the sale was loaded signed in', () => {
    expect(actionOf(situation({ signedIn: false, sale: sale({ viewer: viewer('BUY') }) }))).toBe('SIGN_IN');
  });
});

describe('the button', () => {
  test('buys another item than that of the newest order, and shows the older order of an item', () => {
    const order = { id: 'ord_1', status: 'PENDING_PAYMENT', item: { id: 'itm_2' } } as NonNullable<Viewer['order']>;
    const of = (mine: object | null, ordered = order, level: Situation['stock']['level'] = 'PLENTY') =>
      buttonOf(situation({ stock: { ...situation().stock, level }, sale: sale({ viewer: viewer('PAY', { order: ordered, items: [{ item: { id: 'itm_1' }, remainingLimit: 1, order: mine }] as Viewer['items'] }) }) }));
    expect(of(null)).toEqual({ kind: 'buy' });
    expect(of(null, order, 'SOLD_OUT').kind).toBe('waitlist'); // not the order of an item that is not shown
    expect(of({ id: 'ord_0', status: 'PAID' })).toEqual({ kind: 'order', order: { id: 'ord_0', status: 'PAID' } });
    expect(of({ id: 'ord_0', status: 'PENDING_PAYMENT' }).kind).toBe('pay');
    expect(of(null, { ...order, item: { id: 'itm_1' } }).kind).toBe('pay');
  });
  test('lets a buyer with an order of another item join the waitlist, wait on it, and take its offer', () => {
    const gone = { ...situation().stock, level: 'SOLD_OUT' } as const;
    const place = { id: 'wle_1', status: 'WAITING', ahead: 0, offerExpiresAt: null, quantity: 1, rank: null, card: null, item: { id: 'itm_1' } } as const;
    const order = { id: 'ord_1', status: 'PAID', item: { id: 'itm_2' } } as NonNullable<Viewer['order']>;
    for (const [action, fields] of [
      ['VIEW_ORDER', { order }],
      ['PAY', { order: { ...order, status: 'PENDING_PAYMENT' } }],
      ['IN_WAITING_ROOM', { queueTicket: { id: 'tkt_1', item: { id: 'itm_2' } } }],
    ] as [Action, Partial<Viewer>][]) {
      for (const phase of ['LIVE', 'SOLD_OUT'] as const) {
        const kind = (entry: Viewer['waitlistEntry']) =>
          buttonOf(situation({ stock: gone, sale: sale({ phase, viewer: viewer(action, { ...waiting(entry), ...fields }) }) })).kind;
        expect([action, phase, kind(null)]).toEqual([action, phase, 'waitlist']);
        expect([action, phase, kind(place)]).toEqual([action, phase, 'waiting']);
        expect([action, phase, kind({ ...place, status: 'OFFERED', offerExpiresAt: new Date(T0 + minute).toISOString() })]).toEqual([action, phase, 'buy']);
      }
    }
  });
  test('of an item says that the limit of the sale is used up by another', () => {
    const order = { id: 'ord_1', status: 'PAID', item: { id: 'itm_2' } } as NonNullable<Viewer['order']>;
    const items = [{ item: { id: 'itm_1' }, remainingLimit: 0, order: null, waitlistEntry: null }];
    expect(buttonOf(situation({ sale: sale({ purchaseLimit: 1, viewer: viewer('VIEW_ORDER', { order, items }) }) }))).toMatchObject({ kind: 'none', reason: expect.stringContaining('error.PURCHASE_LIMIT_REACHED.used') });
  });
  test('shows the attempt under way before anything else', () => {
    const it = situation({ sale: sale({ viewer: viewer('BUY') }) });
    expect(buttonOf({ ...it, attempt: { step: 'check', challenge: null, failure: null } }).kind).toBe('checking');
    expect(buttonOf({ ...it, attempt: { step: 'sending', slow: false } }).kind).toBe('sending');
    expect(buttonOf({ ...it, attempt: { step: 'queued', taskId: 'tsk_1' } }).kind).toBe('queue');
  });
  test('leads to the order', () => {
    const order = { id: 'ord_1', status: 'PAID', number: 'n', revision: 1, paymentDeadline: null, total: { amount: '299.00', currencyCode: 'CNY' }, item: { id: 'itm_1' } } as const;
    const it = situation({ sale: sale({ viewer: viewer('VIEW_ORDER', { order }) }) });
    expect(buttonOf(it)).toEqual({ kind: 'order', order });
  });
  test('leads to the waitlist of an item that is sold out, though others are not, and from an offer to the order', () => {
    const gone = { ...situation().stock, level: 'SOLD_OUT' } as const;
    const place = { id: 'wle_1', status: 'WAITING', ahead: 0, offerExpiresAt: null, quantity: 1, rank: null, card: null, item: { id: 'itm_1' } } as const;
    const offered = { ...place, status: 'OFFERED', offerExpiresAt: new Date(T0 + minute).toISOString() } as const;
    const kind = (waitlistEntry: Viewer['waitlistEntry']) =>
      buttonOf(situation({ stock: gone, sale: sale({ viewer: viewer('BUY', waiting(waitlistEntry)) }) })).kind;
    expect(kind(null)).toBe('waitlist');
    expect(kind(place)).toBe('waiting');
    expect(kind({ ...place, item: { id: 'itm_2' } })).toBe('waitlist');
    expect(kind(offered)).toBe('buy');
  });
  test('says the server’s reason', () => {
    const it = situation({ sale: sale({ viewer: viewer('NONE', { disabledReason: 'No.' }) }) });
    expect(buttonOf(it)).toMatchObject({ kind: 'none', reason: 'No.' });
  });
});
