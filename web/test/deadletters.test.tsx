import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { DeadLetters } from '../src/operator/deadletters';
import { Toasts } from '../src/ui/toast';
import { server } from './shop';

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const letter = (id: string) => ({
  id, reason: 'the disk is full', stream: 'orders', attempts: 5, deliveries: 1, setAsideAt: '2026-11-20T12:00:00.000Z', orderTask: null,
});
const pageInfo = { hasNextPage: false, endCursor: null };
const counts = (letters: number, held = 0, acts = 0) => ({ letters: { totalCount: letters }, held: { totalCount: held }, acts: { totalCount: acts } });
const page = (...ids: string[]) => ({ letters: { edges: ids.map((id) => ({ node: letter(id) })), pageInfo } });
const shown = (): string => document.body.textContent!;
const button = (name: string): HTMLElement | undefined => [...document.querySelectorAll('button')].find((b) => b.textContent === name);
const show = (): Promise<void> =>
  act(() =>
    render(
      <>
        <DeadLetters />
        <Toasts />
      </>,
      document.body,
    ),
  ) as Promise<void>;

test.each([
  ['en', 'Retry all', 'Messages: 3.', 'Retried: 2. Not retried: 1; their orders have ended, or their content is gone.'],
  ['zh', '全部重新投递', '共 3 条消息', '已重新投递 2 条；1 条未投递：订单已结束，或内容已丢失。'],
] as const)('all failed messages are retried after a confirmation that names their number (%s)', async (language, name, sure, result) => {
  await setLanguage(language);
  await prepare();
  const asked = server({
    SetAside: [counts(3), counts(1)],
    Letters: [page('1-0', '2-0', '3-0'), page('3-0')],
    ReplayLetters: ['cut', { act: { replayed: 2, refused: 1, userErrors: [] } }],
  });
  await show();
  await vi.waitFor(() => expect(button(name)).toBeDefined());
  await act(() => button(name)!.click());
  expect(shown()).toContain(sure);
  document.querySelector<HTMLTextAreaElement>('[name=note]')!.value = 'there is room again';
  const submit = (): Promise<void> =>
    act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await submit();
  await vi.waitFor(() => expect(document.querySelector('form [role=alert]')).not.toBeNull());
  await submit();
  await vi.waitFor(() => expect(shown()).toContain(result));
  expect(asked.filter((one) => one.name === 'ReplayLetters').at(-1)!.variables).toEqual({ input: { note: 'there is room again' } });
  await vi.waitFor(() => expect(document.querySelectorAll('li.note')).toHaveLength(1));
  expect(button(name)).toBeUndefined(); // one message has a button of its own
});

test('decisions are shown page by page, with those of the command line', async () => {
  await setLanguage('en');
  await prepare();
  const decided = (n: number) => ({ node: { letterId: `${n}-0`, kind: 'REPLAY', at: '2026-11-20T12:00:00.000Z', note: `note ${n}`, reason: 'full', actor: n === 2 ? null : { displayName: 'Ann' } } });
  const asked = server({
    SetAside: [counts(0, 0, 2)],
    LetterActs: [
      { acts: { edges: [decided(1)], pageInfo: { hasNextPage: true, endCursor: 'c1' } } },
      { acts: { edges: [decided(1)], pageInfo: { hasNextPage: true, endCursor: 'c1' } } },
      { acts: { edges: [decided(2)], pageInfo: { hasNextPage: false, endCursor: null } } },
    ],
  });
  await show();
  await vi.waitFor(() => expect(shown()).toContain('note 1'));
  await act(() => button('Show more')!.click());
  await vi.waitFor(() => expect(shown()).toContain('note 2'));
  expect(shown()).toContain('Command line');
  expect(asked.filter((one) => one.name === 'LetterActs').at(-1)!.variables).toEqual({ after: 'c1' });
});

test('unmatched money has a way to end it, also money that only its provider can return', async () => {
  await setLanguage('en');
  await prepare();
  const held = (id: string, order: { id: string; number: string } | null) => ({
    node: { id, at: '2026-11-20T12:00:00.000Z', amount: { amount: '1.00', currencyCode: 'CNY' }, order, provider: 'sandbox', reason: 'x', transaction: id },
  });
  const asked = server({
    SetAside: [counts(0, 2), counts(0)],
    HeldPayments: [{ held: { edges: [held('hld_1', { id: 'ord_1', number: 'N-1' }), held('hld_2', null)], pageInfo } }, { held: { edges: [], pageInfo } }],
    SettleHeld: [{ act: { userErrors: [] } }],
  });
  await show();
  await vi.waitFor(() => expect(document.querySelectorAll('li.note')).toHaveLength(2));
  const buttons = [...document.querySelectorAll('li.note')].map((row) => [...row.querySelectorAll('button')]);
  expect(buttons.map((row) => row.map((b) => b.textContent))).toEqual([['Refund ¥1', 'Mark as settled'], ['Mark as settled']]);
  await act(() => buttons[1]![0]!.click());
  document.querySelector<HTMLTextAreaElement>('[name=note]')!.value = 'returned in the dashboard';
  await act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
  await vi.waitFor(() => expect(document.querySelectorAll('li.note')).toHaveLength(0));
  expect(asked.find((one) => one.name === 'SettleHeld')!.variables).toEqual({ input: { heldPaymentId: 'hld_2', note: 'returned in the dashboard' } });
});

test('messages beyond the first page can be reached', async () => {
  await setLanguage('en');
  await prepare();
  const first = { letters: { edges: [{ node: letter('1-0') }], pageInfo: { hasNextPage: true, endCursor: 'c1' } } };
  const asked = server({ SetAside: [counts(2), counts(2)], Letters: [first, first, page('2-0')] });
  await show();
  await vi.waitFor(() => expect(button('Show more')).toBeDefined());
  await act(() => button('Show more')!.click());
  await vi.waitFor(() => expect(document.querySelectorAll('li.note')).toHaveLength(2));
  expect(asked.filter(({ name }) => name === 'Letters').at(-1)!.variables).toEqual({ after: 'c1' });
});
