import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { runAction } from '../src/operator/acts';
import { AskedNote } from '../src/operator/asked';
import { DeadLetters } from '../src/operator/deadletters';
import { Goods } from '../src/operator/goods';
import { Orders } from '../src/operator/orders';
import { Refunds } from '../src/operator/refunds';
import { Toasts } from '../src/ui/toast';
import { server } from './shop';

beforeEach(async () => {
  await setLanguage('en');
  await prepare();
});

afterEach(() => {
  render(null, document.body);
  history.replaceState(null, '', '/');
  vi.unstubAllGlobals();
});

const money = { amount: '20000.00', currencyCode: 'CNY' };
const at = '2026-11-20T12:00:00.000Z';
const connection = (nodes: object[]) => ({ totalCount: nodes.length, edges: nodes.map((node) => ({ node })), pageInfo: { hasNextPage: false, hasPreviousPage: false, endCursor: null, startCursor: null } });
const intervention = (kind: string, sale: object | null) => ({
  id: 'act_1', kind, state: 'REQUESTED', units: 0, note: 'Agreed by phone', decision: '', createdAt: at, endsAt: null, changes: [], amount: money, goods: null,
  requestedBy: { id: 'usr_2', displayName: 'Ann' }, decidedBy: null, sale, item: null, order: sale && { id: 'ord_1', number: 'N-1', quantity: 1 },
});
const summer = { id: 'sal_1', title: 'Summer' };
const text = (): string => document.body.textContent!;
const buttons = (name: RegExp): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('button')].filter(({ textContent }) => name.test(textContent));
const submit = async (note: string): Promise<void> => {
  document.querySelector('textarea')!.value = note;
  await act(() => void document.querySelector('dialog form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
};
const show = (page: preact.JSX.Element): Promise<void> =>
  act(() =>
    render(
      <>
        <Toasts />
        <AskedNote />
        {page}
      </>,
      document.body,
    ),
  );

test('a refund above the bound of one person says that it waits, where it is confirmed, and is confirmed on the page', async () => {
  const refund = { id: 'ref_1', state: 'REQUESTED', quantity: 1, reason: 'Broken', createdAt: at, decidedAt: null, decision: null, failure: null, decidedBy: null, amount: money, order: { id: 'ord_1', number: 'N-1', quantity: 1, buyer: { displayName: 'Joe', account: 'joe' }, sale: summer } };
  const counts = { waiting: { totalCount: 1 }, decided: { totalCount: 0 } };
  const waiting = { one: connection([intervention('REFUND', summer)]), other: connection([]) };
  const none = { one: connection([]), other: connection([]) };
  const list = { waiting: connection([refund]) };
  const asked = server({
    RefundCounts: [counts, counts, counts],
    WaitingRefunds: [list, list, list],
    AwaitingActs: [none, waiting, none],
    DecideRefund: [{ decideRefund: { order: null, intervention: { state: 'REQUESTED', sale: { id: 'sal_1' } }, userErrors: [] } }],
    DecideIntervention: [{ decideIntervention: { intervention: null, userErrors: [] } }],
  });
  await show(<Refunds />);
  await vi.waitFor(() => expect(buttons(/^Refund ¥20,000/)).toHaveLength(1));
  await act(() => buttons(/^Refund ¥20,000/)[0]!.click());
  await submit('Agreed by phone');
  await vi.waitFor(() => expect(text()).toContain('Waiting for a second person'));
  expect(text()).toContain('Requested. A second person has to confirm.');
  expect(document.querySelector('[role=status] a')!.getAttribute('href')).toBe('/operate/sales/sal_1');
  expect(text()).not.toContain('Saved');
  await vi.waitFor(() => expect(text()).toContain('Waits for a second person, as listed above.'));
  expect(buttons(/^Refund ¥20,000/)).toHaveLength(0); // it is not requested twice
  await act(() => buttons(/^Confirm/)[0]!.click());
  await submit('');
  await vi.waitFor(() => expect(asked.find(({ name }) => name === 'DecideIntervention')?.variables.input).toMatchObject({ interventionId: 'act_1', confirm: true }));
  await vi.waitFor(() => expect(text()).not.toContain('Waiting for a second person'));
});

test('money of no known order waits beside the unmatched payments', async () => {
  history.replaceState(null, '', '/operate/aside');
  const held = { id: 'hld_1', at, amount: money, order: null, provider: 'sandbox', reason: 'No order', transaction: 'tx' };
  const counts = { letters: { totalCount: 0 }, held: { totalCount: 1 }, acts: { totalCount: 0 } };
  server({
    SetAside: [counts, counts],
    HeldPayments: [{ held: connection([held]) }, { held: connection([held]) }],
    AwaitingActs: [{ one: connection([]), other: connection([]) }, { one: connection([]), other: connection([intervention('SETTLE_PAYMENT', null)]) }],
    SettleHeld: [{ act: { intervention: { state: 'REQUESTED', sale: null }, userErrors: [] } }],
  });
  await show(<DeadLetters />);
  await vi.waitFor(() => expect(buttons(/^Mark as settled/)).toHaveLength(1));
  await act(() => buttons(/^Mark as settled/)[0]!.click());
  await submit('By transfer');
  await vi.waitFor(() => expect(text()).toContain('Unmatched money, settled outside · ¥20,000'));
  expect(text()).toContain('Requested. A second person has to confirm.');
  expect(buttons(/^(Confirm|Decline)/)).toHaveLength(2);
});

test('the refund of a paid order and the change of a product lead to where they are confirmed', async () => {
  history.replaceState(null, '', '/operate/orders');
  const order = { id: 'ord_1', number: 'N-1', status: 'PAID', quantity: 1, refundedQuantity: 0, total: money, unitPrice: money, createdAt: at, refunds: [], review: null, item: { goods: { name: 'Thing' } }, buyer: { id: 'usr_1', displayName: 'Joe', account: 'joe' } };
  const goods = { id: 'gds_1', name: 'Lamp', description: '', imageUrl: null, imageAlt: null, listPrice: money };
  const request = { state: 'REQUESTED', sale: { id: 'sal_1' } };
  server({
    AdminOrders: [{ orders: connection([order]) }, { orders: connection([order]) }],
    AdminSales: [{ sales: connection([]) }],
    VoidOrder: [{ voidOrder: { intervention: { ...intervention('VOID_ORDER', summer) }, userErrors: [] } }],
    GoodsList: [{ goods: connection([goods]) }, { goods: connection([goods]) }, { goods: connection([goods]) }],
    GoodsLog: [{ node: null }],
    UpdateGoods: [{ updateGoods: { goods: { id: 'gds_1' }, intervention: request, userErrors: [] } }],
  });
  await show(<Orders />);
  await vi.waitFor(() => expect(buttons(/^Refund order/)).toHaveLength(1));
  await act(() => buttons(/^Refund order/)[0]!.click());
  await submit('Wrong size');
  await vi.waitFor(() => expect(document.querySelector('[role=status] a')?.getAttribute('href')).toBe('/operate/sales/sal_1'));
  await act(() => history.pushState(null, '', '/operate/goods'));
  await show(<Goods />);
  await vi.waitFor(() => expect(document.querySelector('[role=status] a')).toBeNull()); // it was about the other page
  await vi.waitFor(() => expect(buttons(/^Lamp/)).toHaveLength(1));
  await act(() => buttons(/^Lamp/)[0]!.click());
  await act(() => void document.querySelector('dialog form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await vi.waitFor(() => expect(document.querySelector('[role=status] a')?.getAttribute('href')).toBe('/operate/sales/sal_1'));
});

test('a long extension of a live sale is a request', async () => {
  server({ ExtendSale: [{ act: { sale: null, intervention: { state: 'REQUESTED', sale: { id: 'sal_1' } }, userErrors: [] } }] });
  const outcome = await runAction('extend', { id: 'sal_1', startsAt: at, endsAt: at }, { ends: '2026-11-21T12:00:00', note: 'Demand' });
  expect(outcome?.intervention?.state).toBe('REQUESTED');
});
