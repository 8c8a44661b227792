import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Order, PaymentOption } from '@seckill/client/types';
import { setLanguage } from '../src/i18n/text';
import { OrderActions } from '../src/pages/order-actions';
import { server, type Reply } from './shop';

const bank: PaymentOption = { id: 'sandbox', displayName: 'Test bank', icon: 'bank', kind: 'QR', device: 'ANY', unavailableReason: null };
const card: PaymentOption = { id: 'card', displayName: 'Card', icon: 'card', kind: 'REDIRECT', device: 'ANY', unavailableReason: null };
const total = { amount: '699.00', currencyCode: 'CNY' };
let number = 0;

/** Shows an unpaid order that can be paid with these options. */
async function show(...paymentOptions: PaymentOption[]): Promise<void> {
  number++;
  const order = { id: `ord_${number}`, availableActions: ['PAY', 'CANCEL'], total, paymentOptions } as unknown as Order;
  await act(() => render(<OrderActions order={order} />, document.body));
}

const begun = (option: PaymentOption, redirectUrl: string): Reply => ({
  payOrder: { payment: { id: 'pay_1', status: 'PENDING', qrCode: null, redirectUrl, option, amount: total }, order: null, userErrors: [] },
});

const button = (text: string): HTMLElement => [...document.querySelectorAll('button')].find((one) => one.textContent!.startsWith(text))!;
const press = (text: string): Promise<void> => act(() => button(text).click());

const assign = vi.fn();
beforeEach(async () => {
  await setLanguage('en');
  assign.mockClear();
  vi.stubGlobal('location', new Proxy(location, { get: (of, key) => (key === 'assign' ? assign : Reflect.get(of, key)) }));
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

test('a desktop is offered the code, and a phone the link of the same provider', async () => {
  const code: PaymentOption = { id: 'wechat', displayName: 'WeChat Pay', icon: 'chat', kind: 'QR', device: 'DESKTOP', unavailableReason: null };
  const link: PaymentOption = { id: 'wechat-h5', displayName: 'WeChat Pay', icon: 'chat', kind: 'REDIRECT', device: 'PHONE', unavailableReason: null };
  const offered = () => [...document.querySelectorAll('input')].map(({ value }) => value);
  await show(code, link, card);
  expect(offered()).toEqual(['wechat', 'card']);
  vi.stubGlobal('matchMedia', (query: string) => ({ matches: query === '(pointer: coarse)', addEventListener: vi.fn(), removeEventListener: vi.fn() }));
  render(null, document.body);
  await show(code, link, card);
  expect(offered()).toEqual(['wechat-h5', 'card']);
  const asked = server({ PayOrder: [begun(link, 'https://wx.example/1')] });
  render(null, document.body);
  await show(code, link);
  await press('Pay ¥699');
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith('https://wx.example/1'));
  expect(asked[0]!.variables.input).toMatchObject({ optionId: 'wechat-h5' });
});

test('one provider is no choice', async () => {
  const asked = server({ PayOrder: [begun(bank, 'https://bank.example/1')] });
  await show(bank);
  expect(document.querySelector('input')).toBeNull();
  await press('Pay ¥699');
  await vi.waitFor(() => expect(document.querySelector('a')?.href).toBe('https://bank.example/1'));
  expect(asked[0]!.variables.input).toMatchObject({ optionId: 'sandbox' });
  expect(document.body.textContent).not.toContain('another way');
  expect(assign).not.toHaveBeenCalled();
});

test('the buyer chooses among several, and is sent to the page of the chosen one', async () => {
  const asked = server({ PayOrder: [begun(card, 'https://card.example/1'), begun(bank, 'https://bank.example/1')] });
  await show(bank, card);
  expect([...document.querySelectorAll('label')].map((label) => label.textContent)).toEqual(['Test bank', 'Card']);
  await act(() => document.querySelector<HTMLInputElement>('input[value=card]')!.click());
  await press('Pay ¥699');
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith('https://card.example/1'));
  await press('Pay in another way');
  await act(() => document.querySelector<HTMLInputElement>('input[value=sandbox]')!.click());
  await press('Pay ¥699');
  await vi.waitFor(() => expect(document.querySelector('a')?.href).toBe('https://bank.example/1'));
  const [first, second] = asked.map(({ variables }) => variables.input);
  expect([first!.optionId, second!.optionId]).toEqual(['card', 'sandbox']);
  expect(first!.idempotencyKey).not.toBe(second!.idempotencyKey);
});

test('an order that no provider takes says so', async () => {
  await show();
  expect(document.body.textContent).toContain('cannot be paid online');
  expect(button('Pay')).toBeUndefined();
});

test('on a phone Pay opens the page of the provider, and the code is for another device', async () => {
  vi.stubGlobal('matchMedia', (query: string) => ({ matches: query.includes('max-width'), addEventListener: vi.fn(), removeEventListener: vi.fn() }));
  const { payOrder } = begun(bank, 'https://bank.example/1') as { payOrder: { payment: object } };
  server({ PayOrder: [{ payOrder: { ...payOrder, payment: { ...payOrder.payment, qrCode: 'https://bank.example/1' } } }] });
  await show(bank);
  await press('Pay ¥699');
  await vi.waitFor(() => expect(assign).toHaveBeenCalledWith('https://bank.example/1'));
  const link = document.querySelector('a')!; // after the way back
  expect([link.href, link.target]).toEqual(['https://bank.example/1', '']);
  const fold = document.querySelector('details')!;
  expect([fold.open, fold.querySelector('summary')!.textContent]).toEqual([false, 'Pay on another device']);
  expect(fold.contains(document.querySelector('svg[role=img]'))).toBe(true);
});
