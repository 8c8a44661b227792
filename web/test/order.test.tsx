import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { speak } from '../src/i18n/text';
import { OrderPage } from '../src/pages/order';
import { OrderActions } from '../src/pages/order-actions';
import type { Order } from '@seckill/client/types';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

test('an order that is opened signed out asks for the sign-in and leads back', async () => {
  await speak('en');
  server({});
  await act(() => render(<OrderPage id="ord_1" />, document.body));
  expect(document.body.textContent).not.toContain('no such order');
  expect(document.querySelector('a')!.getAttribute('href')).toBe('/sign-in?next=%2Forders%2Ford_1');
});

test('the reason for a refund is kept when the request fails', async () => {
  await speak('en');
  server({ RequestRefund: ['cut'] });
  const order = { id: 'ord_1', availableActions: ['REFUND'], total: { amount: '1.00', currencyCode: 'CNY' } } as unknown as Order;
  await act(() => render(<OrderActions order={order} />, document.body));
  const open = (): Promise<void> => act(() => document.querySelector<HTMLElement>('button.btn')!.click());
  await open();
  const field = document.querySelector('textarea')!;
  await act(() => {
    field.value = 'It does not fit';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await vi.waitFor(() => expect(document.body.textContent).toContain('Cannot reach the shop'));
  await open();
  expect(document.querySelector('textarea')!.value).toBe('It does not fit');
});

test('a declined payment shows why and can be retried on the page', async () => {
  await speak('en');
  const total = { amount: '1.00', currencyCode: 'CNY' };
  const option = { id: 'sandbox', displayName: 'Test bank', icon: 'bank', kind: 'QR', device: 'ANY' };
  const order = { id: 'ord_2', revision: 1, availableActions: ['PAY', 'CANCEL'], total, payments: [], paymentOptions: [option] } as unknown as Order;
  const payment = (id: string) => ({ id, status: 'PENDING', option, amount: total, qrCode: null, redirectUrl: `https://bank.example/${id}`, expiresAt: '' });
  const answer = (id: string) => ({ payOrder: { payment: payment(id), order: null, userErrors: [] } });
  server({ PayOrder: [answer('pay_1'), answer('pay_2')] });
  await act(() => render(<OrderActions order={order} />, document.body));
  const press = (name: RegExp): Promise<void> =>
    act(() => [...document.querySelectorAll<HTMLElement>('button')].find((b) => name.test(b.textContent))!.click());
  await press(/^Pay/);
  await vi.waitFor(() => expect(document.querySelector('a')?.href).toContain('pay_1'));
  const declined = { ...order, revision: 2, payments: [{ id: 'pay_1', failure: { code: 'PAYMENT_DECLINED' } }] } as unknown as Order;
  await act(() => render(<OrderActions order={declined} />, document.body));
  expect(document.querySelector('[role=alert]')!.textContent).toContain('The bank declined it');
  expect(document.querySelector('a')).toBeNull();
  await press(/again/);
  await vi.waitFor(() => expect(document.querySelector('a')?.href).toContain('pay_2'));
  expect(document.querySelector('[role=alert]')).toBeNull();
});
