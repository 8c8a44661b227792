import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { Inbox } from '../src/operator/inbox';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const away = { kind: 'PROVIDER_AWAY', subjectId: 'wechat', since: '2026-11-20T12:00:00.000Z', note: null, quantity: null, decidable: true, sale: null, order: null };

test.each([
  ['en', 'pause the sales'],
  ['zh', '暂停'],
] as const)('a payment provider that is away says what to do and leads to the sales (%s)', async (language, advice) => {
  await setLanguage(language);
  await prepare();
  server({ Inbox: [{ inbox: { totalCount: 1, decidableCount: 1, counts: [], entries: [away] } }] });
  await act(() => render(<Inbox />, document.body));
  await vi.waitFor(() => expect(document.querySelector('li')).not.toBeNull());
  expect(document.querySelector('li')!.textContent).toContain('wechat');
  expect(document.querySelector('li')!.textContent).toContain(advice);
  expect(document.querySelector('li a')!.getAttribute('href')).toBe('/operate/sales');
});

test('a disputed payment leads to its order', async () => {
  await setLanguage('en');
  await prepare();
  const disputed = { ...away, kind: 'PAYMENT_DISPUTED', subjectId: 'pay_1', order: { id: 'ord_1', number: '20261120-7H3K9QX' } };
  const answer = { inbox: { totalCount: 1, decidableCount: 1, counts: [], entries: [disputed] } };
  server({ Inbox: [answer, answer] }); // a page that is known loads twice
  await act(() => render(<Inbox />, document.body));
  await vi.waitFor(() => expect(document.querySelector('li a')?.getAttribute('href')).toBe('/orders/ord_1'));
});

test.each([
  ['ORDER_VOID', 2, '20261120-7H3K9QX × 2'],
  ['REFUND', 1, '20261120-7H3K9QX × 1'],
  ['STOCK_CHANGE', 5_000, 'Summer +5,000'],
  ['SALE_APPROVAL', null, 'Summer'],
] as const)('an entry of the kind %s says of how many units it is', async (kind, quantity, words) => {
  await setLanguage('en');
  await prepare();
  const about = kind === 'ORDER_VOID' || kind === 'REFUND' ? { order: { id: 'ord_1', number: '20261120-7H3K9QX' } } : { sale: { id: 'sal_1', title: 'Summer' } };
  const answer = { inbox: { totalCount: 1, decidableCount: 1, counts: [], entries: [{ ...away, ...about, kind, quantity, subjectId: kind }] } };
  server({ Inbox: [answer, answer] });
  await act(() => render(<Inbox />, document.body));
  await vi.waitFor(() => expect(document.querySelector('li')?.textContent).toContain(words));
});
