import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { Times } from '../src/operator/sale-fields';
import { Home } from '../src/operator/home';
import { midnight, missingOf, spark } from '../src/operator/pulse';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const sale = (id: string, status: string, remaining: number | null) => ({
  node: { id, title: `Sale ${id}`, status, startsAt: '2026-11-20T12:00:00.000Z', items: [{ goods: { id: 'gds_1', name: 'Lamp', imageUrl: null }, stock: { remaining, total: 160 } }] },
});
const group = (...edges: object[]) => ({ edges, pageInfo: { hasNextPage: false } });
const entry = (n: number) => ({ kind: 'REFUND', subjectId: `ref_${n}`, since: '2026-11-20T12:00:00.000Z', note: `Broken ${n}`, quantity: 1, decidable: true, sale: null, order: { id: `ord_${n}`, number: `N-${n}` } });

test.each([
  ['en', '40 of 160 units left', '160 units', '未'],
  ['zh', '剩余 40 件，共 160 件', '共 160 件', 'units'],
] as const)('the first page says how many units are left, and has the first entries of the inbox (%s)', async (language, left, all, not) => {
  await setLanguage(language);
  await prepare();
  const groups = { serverInfo: { mail: false, payments: true, publicUrl: 'https://shop.example' }, running: group(sale('1', 'LIVE', 40), sale('2', 'LIVE', null)), review: group(), upcoming: group(sale('3', 'SCHEDULED', 160)), draft: group() };
  const inbox = { inbox: { totalCount: 7, decidableCount: 7, counts: [], entries: [1, 2, 3, 4, 5, 6, 7].map(entry) } };
  server({ HomeSales: [groups, groups], Inbox: [inbox, inbox] });
  await act(() => render(<Home />, document.body));
  await vi.waitFor(() => expect(document.body.textContent).toContain(left));
  expect(document.querySelector<HTMLElement>('[data-units] [style]')!.style.width).toBe('25%');
  expect(document.body.textContent!.split(all).length - 1).toBeGreaterThanOrEqual(2);
  expect(document.body.textContent).not.toContain(not);
  expect(document.body.textContent).toContain('Broken 5');
  expect(document.body.textContent).not.toContain('Broken 6'); // the inbox has it
  expect(document.querySelector('a[href="/operate/inbox"]')).not.toBeNull();
});

test('a time that has passed is refused where it is typed', async () => {
  await setLanguage('en');
  await prepare();
  const ahead = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();
  await act(() => render(<Times sale={{ startsAt: ahead(-1), endsAt: ahead(1) }} />, document.body));
  const [starts, ends] = [...document.querySelectorAll('input[data-when]')] as [HTMLInputElement, HTMLInputElement];
  expect([starts.validationMessage, ends.validationMessage]).toEqual(['Choose a time in the future', '']);
  starts.value = ends.value;
  starts.dispatchEvent(new Event('input'));
  expect(starts.validationMessage).toBe('');
});

test('a running sale shows orders, revenue and alarms, and an opening says what it lacks', async () => {
  await setLanguage('en');
  await prepare();
  const stats = { conserved: true, remainingUnits: 0, recentOrders: [0, 1, 2], queueAgeSeconds: 20 };
  const orderTotals = { orders: 3, netValue: { amount: '27.00', currencyCode: 'CNY' } };
  const groups = { serverInfo: { mail: false, payments: true, publicUrl: 'https://shop.example' }, running: group(sale('9', 'LIVE', 0)), review: group(sale('8', 'PENDING_APPROVAL', 5)), upcoming: group(sale('7', 'APPROVED', 5)), draft: group() };
  const times = <T,>(reply: T): T[] => Array.from({ length: 6 }, () => reply); // the page begins with the sales of the tests before
  server({ HomeSales: times(groups), Inbox: times({ inbox: { totalCount: 0, decidableCount: 0, counts: [], entries: [] } }), PulseOf: times({ sale: { id: '9', saleStats: stats, orderTotals } }) });
  await act(() => render(<Home />, document.body));
  await vi.waitFor(() => expect(document.querySelectorAll('[data-pulse]')).toHaveLength(1));
  await vi.waitFor(() => expect(document.querySelector('[data-pulse]')!.textContent).toContain('¥27'));
  const pulse = document.querySelector('[data-pulse]')!;
  for (const text of ['Orders today 3', 'Revenue today', 'Orders wait 20 seconds', 'No units left']) expect(pulse.textContent).toContain(text);
  expect(pulse.querySelector('polyline')).not.toBeNull();
  expect([...document.querySelectorAll('[data-missing]')].map(({ textContent }) => textContent)).toEqual(['Missing: approval', 'Missing: schedule'].map((text) => `${text} · Buyers are not asked for a delivery address`));
});

test('an opening that only waits for its time lacks nothing; a contact cannot be verified without mail', async () => {
  await setLanguage('en');
  await prepare();
  const of = { status: 'SCHEDULED', startsAt: '2026-11-20T12:00:00.000Z', requireVerifiedContact: false } as const;
  const at = Date.parse(of.startsAt);
  const info = (differs: object) => ({ mail: true, payments: true, publicUrl: 'https://shop.example', ...differs });
  expect(missingOf(of, info({ mail: false }), at - 3_600_000)).toEqual([]);
  expect(missingOf(of, info({ mail: false }), at - 60_000)).toEqual(['preload']);
  expect(missingOf({ ...of, status: 'PREHEATED', requireVerifiedContact: true }, info({ mail: false }), at)).toEqual(['a mail server, which verifies contacts']);
  expect(missingOf({ ...of, status: 'PREHEATED', requireVerifiedContact: true }, info({}), at)).toEqual([]);
});

test('an opening lacks a payment provider and the address of the shop', async () => {
  await setLanguage('en');
  await prepare();
  const of = { status: 'PREHEATED', startsAt: '2026-11-20T12:00:00.000Z', requireVerifiedContact: false } as const;
  expect(missingOf(of, { mail: true, payments: false, publicUrl: null }, 0)).toEqual(['a payment provider', 'the public address of the shop']);
});

test('today begins at midnight where the reader is', () => {
  const noon = new Date(2026, 10, 20, 12, 30);
  expect(midnight(noon.getTime())).toBe(new Date(2026, 10, 20).toISOString());
  expect(midnight(new Date(2026, 10, 20).getTime())).toBe(new Date(2026, 10, 20).toISOString());
});

test('the line is as wide as its box, and highest where most orders were', () => {
  expect(spark([])).toBe('');
  expect(spark([0, 4, 2])).toBe('0,23 50,1 100,12');
  expect(spark([0, 0])).toBe('0,23 100,23');
});
