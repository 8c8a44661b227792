import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { Orders } from '../src/operator/orders';
import { useFocus } from '../src/ui/focus';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const order = (n: number) => ({
  id: `ord_${n}`,
  number: `No ${n}`,
  status: 'CANCELLED',
  item: { goods: { name: 'Thing' } },
  buyer: { account: 'a@b.example', displayName: 'A' },
  createdAt: '2026-11-20T12:00:00.000Z',
  total: { amount: '1.00', currencyCode: 'CNY' },
  refunds: [],
});

const pageOf = (n: number, hasNextPage: boolean) => ({
  orders: { edges: [{ node: order(n) }], pageInfo: { hasNextPage, endCursor: `after ${n}` } },
});

const shown = (): string => document.body.textContent!;

test('loaded pages of a list stay visible while more load, and are there again after going back', async () => {
  await setLanguage('en');
  const asked = server({ AdminOrders: [pageOf(1, true), pageOf(1, true), pageOf(2, false), pageOf(1, true), pageOf(2, false)] });
  const orders = () => asked.filter(({ name }) => name === 'AdminOrders');
  render(<Orders />, document.body);
  await vi.waitFor(() => expect(shown()).toContain('No 1'));
  const more = [...document.querySelectorAll('button')].find((button) => button.textContent!.includes('Show more'))!;
  await act(() => more.click());
  expect(shown()).toContain('No 1');
  await vi.waitFor(() => expect(shown()).toContain('No 2'));
  expect(orders().at(-1)!.variables).toMatchObject({ after: 'after 1' });

  render(null, document.body);
  render(<Orders />, document.body);
  expect(shown()).toContain('No 2');
  await vi.waitFor(() => expect(orders()).toHaveLength(5)); // as many pages as before
});

test('going back restores the scroll position; a new page starts at its top', async () => {
  const scrolled = vi.fn();
  vi.stubGlobal('scrollTo', scrolled);
  const Page = ({ where }: { where: string }) => (useFocus(where), <main tabIndex={-1}><h1 tabIndex={-1}>{where}</h1></main>);
  const show = async (where: string): Promise<void> => act(() => render(<Page where={where} />, document.body));
  history.replaceState(null, '', '/orders');
  await show('/orders');
  vi.stubGlobal('scrollY', 700);
  dispatchEvent(new Event('scroll'));
  history.pushState(null, '', '/orders/ord_1');
  await show('/orders/ord_1');
  expect(scrolled).toHaveBeenLastCalledWith(0, 0);
  history.replaceState(null, '', '/orders'); // as the back button does
  dispatchEvent(new PopStateEvent('popstate'));
  vi.stubGlobal('scrollY', 100); // what the browser does by itself, too early
  dispatchEvent(new Event('scroll'));
  await show('/orders');
  expect(scrolled).toHaveBeenLastCalledWith(0, 700);
});
