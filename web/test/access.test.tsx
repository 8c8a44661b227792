import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { AccessFields, accessOf, UploadMembers } from '../src/operator/access';
import { server } from './shop';

beforeEach(async () => {
  await setLanguage('en');
  await prepare();
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const values = (): Record<string, string> => Object.fromEntries([...new FormData(document.querySelector('form')!)].map(([name, value]) => [name, String(value)]));
const button = (name: string): HTMLButtonElement => [...document.querySelectorAll('button')].find((each) => each.textContent!.trim() === name)!;
const members = { kind: 'LIST' as const, name: 'Members', source: 'vip', from: '', keptUntil: '', afterSeconds: 0, keepUnits: 20, keepSeconds: 1800 };
const all = { kind: 'ALL' as const, name: null, source: null, from: '', keptUntil: null, afterSeconds: 900, keepUnits: 0, keepSeconds: 0 };

test('the form sends the rules in their order, with minutes as seconds', async () => {
  render(<form><AccessFields rules={[members, all]} /></form>, document.body);
  expect(accessOf(values())).toEqual([
    { kind: 'LIST', name: 'Members', source: 'vip', afterSeconds: 0, keepUnits: 20, keepSeconds: 1800 },
    { kind: 'ALL', name: null, source: null, afterSeconds: 900, keepUnits: 0, keepSeconds: 0 },
  ]);
  await act(() => button('Remove the rule').click());
  expect(accessOf(values())).toHaveLength(1);
  await act(() => button('Add a rule').click());
  expect(accessOf(values()).map(({ kind }) => kind)).toEqual(['ALL', 'ALL']);
});

test('a file is sent in calls of 1000 rows, and its problems are listed by line', async () => {
  const done = (rows: number, problems: object[]) => ({ changeAccessMembers: { list: { members: 1500 }, rows, problems, userErrors: [] } });
  const asked = server({ ChangeAccessMembers: [done(1000, []), done(499, [{ line: 1002, reason: 'MALFORMED' }])] });
  render(<UploadMembers list="vip" close={() => {}} />, document.body);
  const file = new File([Array.from({ length: 1500 }, (_, i) => `buyer${i}@example.com`).join('\n')], 'vip.csv');
  const input = document.querySelector<HTMLInputElement>('[type=file]')!;
  Object.defineProperty(input, 'files', { value: [file] });
  input.required = false; // only a file that a person chose satisfies it
  document.querySelector<HTMLSelectElement>('[name=mode]')!.value = 'REPLACE';
  await act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  await vi.waitFor(() => expect(document.querySelector('[role=status]')?.textContent).toContain('The list has 1,500 members.'));
  const inputs = asked.map(({ variables }) => (variables as { input: { mode: string; firstLine: number; rows: string[] } }).input);
  expect(inputs.map(({ mode, firstLine, rows }) => [mode, firstLine, rows.length])).toEqual([['REPLACE', 1, 1000], ['ADD', 1001, 500]]);
  expect(document.querySelector('li')!.textContent).toBe('Line 1,002: cannot be read, not applied');
});
