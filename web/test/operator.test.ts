import { describe, expect, test } from 'vitest';
import type { User } from '../src/api/session';
import { actionsOf, instant, localInput, type SaleStatus } from '../src/operator/acts';
import { extend, unitsAddUp, REACH_S, type Figures, type Point } from '../src/operator/figures';
import { fieldName, fieldsOf, valueWords } from '../src/operator/log';
import { textsOf } from '../src/operator/texts';
import { ahead } from '@seckill/client/waiting';
import { T0 } from './shop';

const figures = (at: number, fields: Partial<Figures> = {}): Figures => ({
  at: new Date(at).toISOString(),
  conserved: true,
  countedSince: null,
  captchas: 30,
  paths: 12,
  requests: 9,
  accepted: 8,
  orders: 7,
  paidOrders: 6,
  expiredOrders: 0,
  refundedOrders: 0,
  p99Ms: 1.5,
  queueAgeSeconds: 0,
  totalUnits: 42,
  remainingUnits: 10,
  pendingUnits: 12,
  unpaidUnits: 12,
  offeredUnits: 0, waitingBuyers: 0, items: [],
  paidUnits: 20,
  queueDepth: 0,
  requestsPerSecond: 5,
  ordersPerSecond: 1,
  netValue: { amount: '1.00', currencyCode: 'CNY' },
  gate: [],
  ...fields,
});

describe('the steps of a sale', () => {
  const operator = { id: 'usr_1', displayName: 'O', account: null, role: 'OPERATOR' } as const;
  const admin = { ...operator, role: 'ADMIN' } as const;
  const starts = new Date(T0).toISOString();
  const acts = (status: SaleStatus, who: User, at = T0 + 1) => actionsOf({ status, startsAt: starts }, who, at);
  test('depend on its status and the role of the user', () => {
    expect(acts('PENDING_APPROVAL', operator)).toEqual(['withdraw', 'duplicate', 'template']);
    expect(acts('PENDING_APPROVAL', admin)).toEqual(['approve', 'reject', 'withdraw', 'cancel', 'duplicate', 'template']);
    expect(acts('DRAFT', operator)).toEqual(['submit', 'discard', 'duplicate', 'template']);
    expect(acts('DRAFT', admin)).toEqual(['submit', 'cancel', 'duplicate', 'template']);
    expect(acts('LIVE', operator)).toEqual(['pause', 'extend', 'describe', 'duplicate', 'template']);
    expect(acts('ENDED', admin)).toEqual(['describe', 'duplicate', 'template']);
  });
  test('of a paused sale depend on whether it has opened', () => {
    expect(acts('PAUSED', operator, T0 - 1)).toEqual(['resume', 'reschedule', 'describe', 'duplicate', 'template']);
    expect(acts('PAUSED', admin, T0 - 1)).toContain('cancel');
    expect(acts('PAUSED', operator)).toEqual(['resume', 'extend', 'describe', 'duplicate', 'template']);
  });
  test('of a status that is not known yet are none', () => expect(acts('NEW' as never, admin)).toEqual([]));
});

describe('the figures', () => {
  test('must add up', () => {
    expect(unitsAddUp(figures(T0))).toBe(true);
    expect(unitsAddUp(figures(T0, { paidUnits: 21 }))).toBe(false);
    expect(unitsAddUp(figures(T0, { conserved: false }))).toBe(false);
  });
  test('make one point a second, in order, and reach back five minutes', () => {
    let series: Point[] = [];
    for (let s = 0; s < 400; s++) series = extend(series, figures(T0 + s * 1000));
    series = extend(series, figures(T0 + 399_500, { remainingUnits: 7 }));
    series = extend(series, figures(T0));
    expect(series).toHaveLength(REACH_S);
    expect(series.at(-1)).toMatchObject({ at: T0 / 1000 + 399, left: 7 });
  });
});

describe('the forms', () => {
  test('show instants in the time zone of the user', () => {
    expect(new Date(localInput(T0)).getTime()).toBe(T0);
  });
  test('leave an instant alone that was not touched, also in the hour that comes twice', () => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'Europe/Berlin';
    try {
      const second = '2026-10-25T01:30:00.000Z'; // the later of two half past two
      expect(instant(localInput(Date.parse(second)), second)).toBe(second);
      expect(instant('2026-10-25T04:00:00', second)).toBe('2026-10-25T03:00:00.000Z');
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });
});

test('the operators’ catalogues have the same keys', async () => {
  expect(Object.keys(await textsOf('zh')).sort()).toEqual(Object.keys(await textsOf('en')).sort());
});

test('the position in the waiting room never grows', () => {
  expect(ahead(null, 88)).toBe(88);
  expect(ahead(88, 161)).toBe(88);
  expect(ahead(88, 12)).toBe(12);
});

describe('the log of a sale', () => {
  const names = { gds_1: 'Night lamp' };
  const change = (name: string, kind: 'TEXT' | 'NUMBER' | 'JSON' | 'INSTANT', to: string, from?: string | null) => ({ name, kind, to, from: from ?? null, fromKnown: from !== undefined });
  test('lists what an act changed, in one order', () => {
    expect(fieldsOf([change('endsAt', 'INSTANT', 'b'), change('startsAt', 'INSTANT', 'a'), change('title', 'TEXT', 'T')]).map(([name]) => name)).toEqual(['title', 'startsAt', 'endsAt']);
  });
  test('reads values by their kind', () => {
    expect(fieldsOf([change('title', 'TEXT', '12', '{"A":1}')])).toEqual([['title', '12', '{"A":1}']]);
    expect(fieldsOf([change('confirmNote', 'TEXT', ''), change('rules', 'TEXT', '', 'One each.')])).toEqual([['rules', '', 'One each.']]); // a remark that was not made
    expect(fieldsOf([change('units', 'NUMBER', '-3')])).toEqual([['units', -3]]);
    expect(fieldsOf([change('captchaKinds', 'JSON', '["TEXT"]', '[]')])).toEqual([['captchaKinds', ['TEXT'], []]]);
    expect(fieldsOf([change('listPrice', 'TEXT', '19.90')])).toEqual([['listPrice', '19.90']]);
  });
  test('the units of a void are no change of the stock', () => {
    const [, units] = fieldsOf([change('order', 'TEXT', 'ord_1'), change('units', 'NUMBER', '2')]).toReversed();
    expect(units).toEqual(['orderUnits', 2]);
    expect([fieldName('orderUnits'), valueWords('orderUnits', 2, names)]).toEqual(['Units', '2']);
  });
  test('say how many orders of a cluster were held', () => {
    const held = fieldsOf([change('orders', 'NUMBER', '3'), change('cluster', 'TEXT', 'nAAAABBBB')]);
    expect(held.map(([name, value]) => `${fieldName(name)} ${valueWords(name, value, {})}`)).toEqual(['Cluster nAAAABBBB', 'Orders 3']);
  });
  test('shows that a field had no value before, or has none now', () => {
    expect(fieldsOf([change('purchaseLimit', 'NUMBER', '3', null)])).toEqual([['purchaseLimit', 3, null]]);
    expect(fieldsOf([change('purchaseLimit', 'NUMBER', 'null', '3')])).toEqual([['purchaseLimit', null, 3]]);
    expect(valueWords('purchaseLimit', null, names)).toBe('–');
  });
  test('words values as people read them', () => {
    expect(valueWords('items', [{ goods: 'gds_1', stock: 5, price: '19.90' }], names)).toBe('Night lamp × 5, 19.90');
    expect(valueWords('units', 5000, names)).toBe('+5,000');
    expect(valueWords('units', -3, names)).toBe('-3');
    expect(valueWords('permitRatio', 1.5, names)).toBe('1.5');
    expect(valueWords('paymentWindowSeconds', 900, names)).toBe('15 minutes');
    expect(valueWords('captchaKinds', [], names)).toBe('All');
    expect(valueWords('hideExactStock', true, names)).toBe('yes');
    expect(valueWords('rules', '', names)).toBe('–');
  });
});
