/** The list of what happened: feed and log in one order, with filters in the address. */
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { Happenings, happened } from '../src/operator/feed';

afterEach(() => render(null, document.body));

const at = (minute: number): string => `2026-11-20T12:0${minute}:00.000Z`;
const entry = (minute: number, action: string) => ({ at: at(minute), action, note: null, changes: [], actor: { displayName: 'Ann' } });
const line = (minute: number, order = false, message = 'said') => ({ cursor: `${minute}-0`, at: at(minute), message, order: order ? { id: 'ord_1', number: 'No 1' } : null });

test('lines of the feed and entries of the log are one list, newest first', () => {
  const all = happened([line(4, true), line(1)], [entry(3, 'ADJUST_STOCK'), entry(2, 'PAUSE')]);
  expect(all.map(({ at: when, part }) => [when, part])).toEqual([[at(4), 'orders'], [at(3), 'stock'], [at(2), 'staff'], [at(1), null]]);
});

test('an act that both have is there once; what the log does not have stays', () => {
  const all = happened([line(2, false, 'Ann: paused it (Paused)'), line(2, false, 'Bob: resumed it (Live)'), line(2, true, 'Ann: Orders paid: 1')], [entry(2, 'PAUSE')]);
  expect(all.map((each) => ('line' in each ? each.line.message : each.entry.action)).sort()).toEqual(['Ann: Orders paid: 1', 'Bob: resumed it (Live)', 'PAUSE']);
});

test.each([['en', 'Stock', 'Stock changed', 'Paused'], ['zh', '库存', '调整库存', '暂停']] as const)('a filter narrows the list and stays in the address (%s)', async (language, filter, stock, pause) => {
  await setLanguage(language);
  await prepare();
  history.replaceState(null, '', '/operate/sales/sal_1');
  await act(() => render(<Happenings id="sal_1" live={false} entries={[entry(3, 'ADJUST_STOCK'), entry(2, 'PAUSE')]} names={{}} />, document.body));
  const list = (): string => document.querySelector('ol')!.textContent!;
  expect(list()).toContain(stock);
  expect(list()).toContain(pause);
  await act(() => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === filter)!.click());
  expect(location.search).toBe('?show=stock');
  expect(list()).toContain(stock);
  expect(list()).not.toContain(pause);
});
