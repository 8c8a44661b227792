import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import type { AdminSale } from '../src/operator/acts';
import { Bought } from '../src/operator/bought';
import { Orders } from '../src/operator/orders';
import { Switches } from '../src/operator/switches';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  history.replaceState(null, '', '/');
  vi.unstubAllGlobals();
});

const start = async (language: 'en' | 'zh'): Promise<void> => {
  await setLanguage(language);
  await prepare();
};
const cluster = { accounts: 6, firstAfterOpeningMs: 420, heldOrders: 1, kind: 'NETWORK', label: 'n-1234567', lastAfterOpeningMs: 90_000, orders: 7, units: 9, unpaidOrders: 5 };
const answer = (clusters: object[]) => ({
  sale: { id: 'sal_1', clusters: { edges: clusters.map((node) => ({ node })), pageInfo: { hasNextPage: false, endCursor: null } } },
});
const summer = { sale: { id: 'sal_1', title: 'Summer' } };
const text = (): string => document.body.textContent!;
const press = (name: RegExp): Promise<void> => act(() => [...document.querySelectorAll<HTMLElement>('button')].find(({ textContent }) => name.test(textContent))!.click());
const submit = async (note: string): Promise<void> => {
  document.querySelector('textarea')!.value = note;
  await act(() => void document.querySelector('[role=dialog] form, dialog form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
};

test.each([
  ['en', ['One network', 'Accounts6', 'Unpaid orders5', 'Held for review1', '0.42 s', '1 minute 30 seconds']],
  ['zh', ['同一网络', '账号数6', '待付款订单5', '待核实1', '0.42 秒', '1 分钟 30 秒']],
] as const)('clusters say what is shared, by how many, and when, and lead to their orders (%s)', async (language, words) => {
  await start(language);
  const clusters = answer([cluster, { ...cluster, label: 'n-7654321', heldOrders: 5 }]);
  server({ ClusteredSale: [summer], SaleClusters: [clusters] });
  await act(() => render(<Bought id={`sal_${language}`} />, document.body));
  await vi.waitFor(() => expect(text()).toContain('n-1234567'));
  for (const each of words) expect(text()).toContain(each);
  expect(document.querySelector('li a')!.getAttribute('href')).toBe(`/operate/orders?sale=sal_${language}&cluster=n-1234567`);
  expect(document.querySelectorAll('li')[1]!.querySelector('button')).toBeNull(); // all are held
});

test('the second page of clusters is added to the first', async () => {
  await start('en');
  const page = (label: string, hasNextPage: boolean) => {
    const { sale } = answer([{ ...cluster, label }]);
    return { sale: { ...sale, clusters: { ...sale.clusters, pageInfo: { hasNextPage, endCursor: `6.${label}` } } } };
  };
  const asked = server({ ClusteredSale: [summer], SaleClusters: [page('n-1111111', true), page('n-1111111', true), page('n-2222222', false)] });
  await act(() => render(<Bought id="sal_long" />, document.body));
  await vi.waitFor(() => expect(text()).toContain('n-1111111'));
  await press(/^Show more/);
  await vi.waitFor(() => expect(text()).toContain('n-2222222'));
  const pages = asked.filter(({ name }) => name === 'SaleClusters');
  expect(pages.map(({ variables }) => (variables as object as { after: string | null }).after)).toEqual([null, null, '6.n-1111111']); // each is an aggregate over the orders
  expect(text()).not.toContain('Show more');
});

test('a sale without clusters says so', async () => {
  await start('en');
  server({ ClusteredSale: [summer], SaleClusters: [answer([])] });
  await act(() => render(<Bought id="sal_none" />, document.body));
  await vi.waitFor(() => expect(text()).toContain('No two accounts'));
});

test('a cluster is held with a reason, and what was not held is said', async () => {
  await start('en');
  const asked = server({ ClusteredSale: [summer], SaleClusters: [answer([cluster]), answer([{ ...cluster, heldOrders: 5 }])], HoldOrders: [{ holdOrders: { held: 3, left: 1, userErrors: [] } }] });
  await act(() => render(<Bought id="sal_hold" />, document.body));
  await vi.waitFor(() => expect(document.querySelector('li button')).not.toBeNull());
  await press(/^Hold for review/);
  await submit('One network');
  await vi.waitFor(() => expect(asked.find(({ name }) => name === 'HoldOrders')?.variables.input).toEqual({ saleId: 'sal_hold', cluster: 'n-1234567', note: 'One network' }));
  await vi.waitFor(() => expect(document.querySelector('li button')).toBeNull());
});

test('the orders of a cluster show their answers and are released', async () => {
  await start('en');
  history.replaceState(null, '', '/operate/orders?sale=sal_1&cluster=n-1234567&held=1');
  const money = { amount: '1.00', currencyCode: 'CNY' };
  const held = { held: true, until: '2026-11-21T12:00:00Z', text: '', answer: 'We share a flat' };
  const node = (id: string, review: object | null) => ({
    id, number: `No ${id}`, status: 'PENDING_PAYMENT', quantity: 1, refundedQuantity: 0, total: money, unitPrice: money, createdAt: '2026-11-20T12:00:00Z', refunds: [], review,
    item: { goods: { name: 'Thing' } }, buyer: { id: 'usr_1', displayName: 'Ann', account: 'ann' },
  });
  const orders = { orders: { edges: [{ node: node('1', held) }, { node: node('2', null) }], pageInfo: { hasNextPage: false, endCursor: null } } };
  const none = { sales: { edges: [], pageInfo: { hasNextPage: false, endCursor: null } } };
  const asked = server({ AdminOrders: [orders, orders], AdminSales: [none, none], ReleaseOrder: [{ releaseOrder: { order: { id: '1' }, userErrors: [] } }] });
  await act(() => render(<Orders />, document.body));
  await vi.waitFor(() => expect(text()).toContain('Answer of the buyer: We share a flat'));
  expect(asked.find(({ name }) => name === 'AdminOrders')!.variables).toMatchObject({ filter: { saleId: 'sal_1', cluster: 'n-1234567', inReview: true } });
  const release = [...document.querySelectorAll<HTMLElement>('tbody button')].filter(({ textContent }) => textContent.startsWith('Release No'));
  expect(release).toHaveLength(1);
  await act(() => release[0]!.click());
  await submit('A household');
  await vi.waitFor(() => expect(asked.find(({ name }) => name === 'ReleaseOrder')?.variables.input).toEqual({ orderId: '1', note: 'A household' }));
});

test('the number of accounts for a review is among the access controls', async () => {
  await start('en');
  const switches = { captchaRequired: false, captchaKinds: [], permitRatio: 0, proofOfWorkMax: 0, inflowPerSecond: 0, reviewAccounts: 5, limitBurst: 0, limitPerSecond: 0 };
  const asked = server({ SetSaleSwitches: [{ setSaleSwitches: { sale: null, intervention: null, userErrors: [] } }] });
  await act(() => render(<Switches sale={{ id: 'sal_1', status: 'LIVE', switches } as unknown as AdminSale} reload={async () => {}} />, document.body));
  expect(document.querySelector<HTMLInputElement>('[name=reviewAccounts]')!.value).toBe('5');
  await act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await vi.waitFor(() => expect(asked[0]?.variables.input).toMatchObject({ reviewAccounts: 5 }));
});
