import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { setLanguage } from '../src/i18n/text';
import { OrderPage } from '../src/pages/order';
import { OrderActions } from '../src/pages/order-actions';
import type { Order } from '@seckill/client/types';
import { stubWebSocket, server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

test('an order that is opened signed out asks for the sign-in and leads back', async () => {
  await setLanguage('en');
  server({});
  await act(() => render(<OrderPage id="ord_1" />, document.body));
  expect(document.body.textContent).not.toContain('no such order');
  expect(document.querySelector('a')!.getAttribute('href')).toBe('/sign-in?next=%2Forders%2Ford_1');
});

test('the reason for a refund is kept when the request fails', async () => {
  await setLanguage('en');
  server({ RequestRefund: ['cut'] });
  const order = { id: 'ord_1', availableActions: ['REFUND'], total: { amount: '1.00', currencyCode: 'CNY' } } as unknown as Order;
  await act(() => render(<OrderActions order={order} />, document.body));
  const open = (): Promise<void> => act(() => document.querySelector<HTMLElement>('button.link')!.click());
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
  await setLanguage('en');
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

test('the history of an order shows the units of its refunds as the server words them', async () => {
  const money = (amount: string) => ({ amount, currencyCode: 'CNY' });
  const order = {
    id: 'ord_3', number: '20261120-7H3K9QX', revision: 5, status: 'PAID', quantity: 3, refundedQuantity: 1, refundedAmount: money('1.00'), total: money('3.00'), unitPrice: money('1.00'),
    availableActions: [], payments: [], paymentOptions: [], createdAt: '2026-11-20T12:00:00Z', paidAt: '2026-11-20T12:01:00Z', paymentDeadline: null, receipt: null, recipient: null, fulfilment: null,
    item: { id: 'itm_1', goods: { id: 'gds_1', name: 'Thing', imageUrl: null } }, sale: { slug: 'one', title: 'One' },
    timeline: [
      { at: '2026-11-20T12:00:00Z', status: 'PENDING_PAYMENT', note: null },
      { at: '2026-11-20T12:01:00Z', status: 'PAID', note: null },
      { at: '2026-11-20T12:02:00Z', status: 'REFUNDING', note: 'A refund of 1 of 3 units was asked for.' },
      { at: '2026-11-20T12:02:00Z', status: 'PAID', note: 'The money of 1 of 3 units went back.' },
    ],
    refunds: [{ id: 'rfd_1', status: 'SUCCEEDED', quantity: 1, reason: 'one is enough', createdAt: '2026-11-20T12:02:00Z', amount: money('1.00') }],
  } as unknown as Order;
  startSession({ accessToken: 't', accessTokenExpiresAt: new Date(Date.now() + 3_600_000).toISOString() }, { id: 'usr_1', displayName: 'Ann', account: 'ann', role: 'CUSTOMER' });
  const asked = 'A refund of 1 of 3 units was asked for.';
  const note = 'The money of 1 of 3 units went back.';
  for (const [language, texts, headings] of [
    ['en', [note, '× 1'], ['Awaiting payment', 'Paid', asked, note]],
    ['zh', [note, '1 件'], ['待付款', '已付款', asked, note]],
  ] as const) {
    await setLanguage(language);
    server({ OneOrder: [{ order }] });
    stubWebSocket([]);
    await act(() => render(<OrderPage id="ord_3" />, document.body));
    await vi.waitFor(() => expect(document.body.textContent).toContain(texts[0]));
    expect(document.querySelector('ul')!.textContent).toContain(texts[1]);
    // A partial refund does not read as a second payment.
    expect([...document.querySelectorAll('ol p.font-medium')].map(({ textContent }) => textContent)).toEqual(headings);
    expect(document.querySelector('ol')!.textContent!.split(note)).toHaveLength(2);
    expect(document.body.textContent).not.toMatch(/Refund pending|退款中|审核中/); // the refund is over
    await act(() => render(null, document.body));
  }
});

test('a receipt has the full date, buyer, product, quantity, method, tax, seller and total, and no id', async () => {
  const money = (amount: string, currencyCode = 'HUF') => ({ amount, currencyCode });
  const order = {
    id: 'ord_4', number: '20261120-7H3K9QX', revision: 3, status: 'PAID', quantity: 2, refundedQuantity: 0, refundedAmount: money('0.00'), total: money('1999.00'), unitPrice: money('999.50'),
    availableActions: [], paymentOptions: [], createdAt: '2026-11-20T12:00:00Z', paidAt: '2026-11-20T12:01:00Z', paymentDeadline: null, recipient: null, fulfilment: null, timeline: [], refunds: [],
    payments: [{ id: 'pay_1', status: 'CLOSED', option: { displayName: 'Other' } }, { id: 'pay_2', status: 'SUCCEEDED', option: { displayName: 'Card' } }],
    receipt: { number: '20261120-7H3K9QX', seller: 'Shop Ltd', sellerDetails: ['1 Road', 'VAT 1'], tax: { name: 'VAT', rate: '27', amount: money('424.98') } },
    item: { id: 'itm_1', goods: { id: 'gds_1', name: 'Thing', imageUrl: null } }, sale: { slug: 'one', title: 'One' },
  } as unknown as Order;
  startSession({ accessToken: 't', accessTokenExpiresAt: new Date(Date.now() + 3_600_000).toISOString() }, { id: 'usr_1', displayName: 'Ann', account: 'ann', role: 'CUSTOMER' });
  for (const [language, texts] of [
    ['en', ['November 20, 2026', 'Ann', 'Thing × 2', 'Card', 'HUF\u00a01,999', '27% VAT', 'HUF\u00a0424.98', 'Shop Ltd', 'VAT 1']],
    ['zh', ['2026年11月20日', '买方', 'Thing × 2', '支付方式', 'Card', '1,999', '424.98', 'Shop Ltd']],
  ] as const) {
    await setLanguage(language);
    server({ OneOrder: [{ order }] });
    stubWebSocket([]);
    await act(() => render(<OrderPage id="ord_4" />, document.body));
    await vi.waitFor(() => expect(document.querySelector('[data-receipt]')).not.toBeNull());
    const receipt = document.querySelector('[data-receipt]')!.textContent!;
    for (const text of texts) expect(receipt).toContain(text);
    expect(receipt).not.toMatch(/ord_|pay_/);
    await act(() => render(null, document.body));
  }
});
