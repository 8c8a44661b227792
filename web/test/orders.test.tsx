/** The orders desk: a table that is worked with the keyboard, in bulk, and exported. */
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { Orders } from '../src/operator/orders';
import { Toasts } from '../src/ui/toast';
import { server, type SentRequest, type Reply } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const money = { amount: '9.00', currencyCode: 'CNY' };
const asked = (n: string) => [{ id: `rfd_${n}`, status: 'REQUESTED', amount: money, reason: 'Too late' }];
const order = (n: string, more: object = {}) => ({
  id: `ord_${n}`, number: `No ${n}`, status: 'PAID', quantity: 1, refundedQuantity: 0, total: money, unitPrice: money, createdAt: '2026-11-20T12:00:00.000Z', paidAt: null, refunds: [], review: null,
  item: { goods: { name: 'Thing' } }, sale: { id: 'sal_1', slug: 'one', title: 'One' }, buyer: { id: 'usr_1', displayName: 'Ann', account: 'ann@demo.example' }, ...more,
});
const answer = (...nodes: object[]) => ({ orders: { edges: nodes.map((node) => ({ node })), pageInfo: { hasNextPage: false, endCursor: null } } });
const shown = (): string => document.body.textContent!;
const buttons = (name: RegExp): HTMLElement[] => [...document.querySelectorAll('button')].filter(({ textContent }) => name.test(textContent));
const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('tr[data-row]')];
const press = (key: string): Promise<void> =>
  act(() => void (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))) as Promise<void>;
const submit = (note: string): Promise<void> =>
  act(() => {
    const field = document.querySelector<HTMLTextAreaElement>('dialog [name=note]');
    if (field) field.value = note;
    document.querySelector('dialog form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  }) as Promise<void>;

let shows = 0;

async function show(replies: Record<string, Reply[]>, search = `?q=search ${++shows}`, language: 'en' | 'zh' = 'en'): Promise<SentRequest[]> {
  await setLanguage(language);
  await prepare();
  history.replaceState(null, '', `/operate/orders${search}`);
  const none = { sales: { edges: [], pageInfo: { hasNextPage: false, endCursor: null } } };
  const sent = server({ AdminSales: [none, none, none], ...replies });
  await act(() => render(<><Orders /><Toasts /></>, document.body));
  await vi.waitFor(() => expect(rows().length).toBeGreaterThan(0));
  return sent;
}

test.each([['en', ['Order', 'Item', 'Buyer', 'Placed', 'Total', 'Status']], ['zh', ['订单', '商品', '买家', '下单时间', '金额', '状态']]] as const)('orders are rows under headings, each with one menu, and a row opens its order (%s)', async (language, headings) => {
  await show({ AdminOrders: [answer(order('1'), order('2', { status: 'PENDING_PAYMENT' }))] }, '?status=PAID', language);
  const heads = [...document.querySelectorAll('thead th')].map(({ textContent }) => textContent);
  for (const heading of headings) expect(heads).toContain(heading);
  expect(document.querySelectorAll('tr[data-row] details')).toHaveLength(2);
  await act(() => void rows()[0]!.querySelector('td:nth-of-type(2)')!.dispatchEvent(new MouseEvent('click', { bubbles: true })));
  expect(location.pathname).toBe('/operate/orders/ord_1');
});

test('refunds are approved one by one, and those that fail stay chosen with their reasons', async () => {
  const all = [order('1', { refunds: asked('1') }), order('2', { refunds: asked('2') }), order('3', { status: 'EXPIRED' })];
  const refused = { __typename: 'BasicError', code: 'CONFLICT', message: 'decided by another person', path: null };
  const sent = await show({
    AdminOrders: [answer(...all), answer(order('1', { status: 'REFUNDING' }), all[1]!, all[2]!)],
    DecideRefund: [{ decideRefund: { order: null, intervention: null, userErrors: [] } }, { decideRefund: { order: null, intervention: null, userErrors: [refused] } }],
  });
  await act(() => document.querySelector<HTMLInputElement>('thead input[type=checkbox]')!.click());
  expect(shown()).toContain('3 chosen');
  await act(() => buttons(/^Approve 2 refunds/)[0]!.click());
  expect(document.querySelector('dialog')!.textContent).toContain('¥18'); // what is sent back altogether
  await submit('Late delivery');
  await vi.waitFor(() => expect(document.querySelector('dialog')!.textContent).toContain('1 of 2 done'));
  expect(document.querySelector('dialog')!.textContent).toContain('No 2');
  const inputs = sent.filter(({ name }) => name === 'DecideRefund').map(({ variables }) => variables.input);
  expect(inputs).toEqual(['rfd_1', 'rfd_2'].map((refundId) => ({ refundId, approve: true, note: 'Late delivery', restock: true, amount: money })));
  await act(() => document.querySelector<HTMLElement>('dialog [aria-label=Close]')!.click());
  const boxes = rows().map((row) => row.querySelector<HTMLInputElement>('input')!.checked);
  expect(boxes).toEqual([false, true, true]); // nothing was done with the last one
});

test('orders that are held and orders that are not paid are released with a reason, each by its own act', async () => {
  const held = { held: true, until: '2026-11-21T12:00:00Z', text: '', answer: null };
  const all = [order('1', { status: 'PENDING_PAYMENT', review: held }), order('2', { status: 'PENDING_PAYMENT' })];
  const sent = await show({
    AdminOrders: [answer(...all), answer(...all), answer(...all)],
    ReleaseOrder: [{ releaseOrder: { order: { id: 'ord_1' }, userErrors: [] } }],
    ExpireOrder: [{ expireOrder: { order: { id: 'ord_2', status: 'EXPIRED' }, userErrors: [] } }],
  });
  await act(() => document.querySelector<HTMLInputElement>('thead input[type=checkbox]')!.click());
  await act(() => buttons(/^Release 1 from review/)[0]!.click());
  await submit('A household');
  await vi.waitFor(() => expect(sent.find(({ name }) => name === 'ReleaseOrder')?.variables.input).toEqual({ orderId: 'ord_1', note: 'A household' }));
  await vi.waitFor(() => expect(document.querySelector('dialog')).toBeNull());
  expect(shown()).toContain('1 of 1 done');
  await vi.waitFor(() => expect(buttons(/^Release 1 unpaid order/)).toHaveLength(1));
  await act(() => buttons(/^Release 1 unpaid order/)[0]!.click());
  await submit('The bank closed');
  await vi.waitFor(() => expect(sent.find(({ name }) => name === 'ExpireOrder')?.variables.input).toEqual({ orderId: 'ord_2', note: 'The bank closed' }));
});

test('j and k go through the orders, x chooses, / searches, ? shows the keys; letters in a field stay letters', async () => {
  await show({ AdminOrders: [answer(order('1'), order('2'))] });
  await press('j');
  expect(document.activeElement!.textContent).toContain('No 1');
  await press('j');
  await press('j');
  expect(document.activeElement!.textContent).toContain('No 2'); // the last one
  await press('x');
  expect(shown()).toContain('1 chosen');
  await press('k');
  expect(document.activeElement!.textContent).toContain('No 1');
  await press('/');
  expect((document.activeElement as HTMLInputElement).type).toBe('search');
  await press('j');
  expect((document.activeElement as HTMLInputElement).type).toBe('search');
  (document.activeElement as HTMLElement).blur();
  await press('?');
  expect(document.querySelector('dialog')!.textContent).toContain('Next order');
});

test('what is shown is exported, and a formula in it is text', async () => {
  const files: Blob[] = [];
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => (files.push(blob as Blob), 'blob:1'));
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => {});
  await show({ AdminOrders: [answer(order('1', { item: { goods: { name: '=1+"x", y' } } }), order('2'))] });
  await act(() => buttons(/^Export 2 orders/)[0]!.click());
  const lines = (await files[0]!.text()).replace('\uFEFF', '').split('\r\n');
  expect(lines).toHaveLength(4); // the headings, the orders, the last line break
  expect(lines[1]).toBe('No 1,2026-11-20T12:00:00.000Z,PAID,One,"\'=1+""x"", y",1,0,ann@demo.example,9.00,CNY');
});

test('filters are one line that is kept in the address, and cleared at once', async () => {
  await show({ AdminOrders: [answer(order('1')), answer(order('1'), order('2'))] }, '?q=thing&status=PAID&sale=sal_1&from=2026-11-20&sort=oldest');
  await act(() => buttons(/^Clear filters/)[0]!.click());
  expect(location.search).toBe('');
});
