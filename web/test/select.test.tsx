import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { Pick } from '../src/operator/pick';
import { Select } from '../src/ui/select';

const sources = import.meta.glob<string>('../src/**/*.tsx', { query: '?raw', import: 'default', eager: true });

afterEach(() => render(null, document.body));

const shown = () => document.querySelector('select')!;
const sent = (): FormDataEntryValue | null => new FormData(document.querySelector('form')!).get('product');

test('there is one select component, which keeps a stored value, and no other', () => {
  expect(Object.keys(sources).length).toBeGreaterThan(50);
  const own = Object.entries(sources).filter(([, text]) => /<select\b/.test(text)).map(([path]) => path);
  expect(own).toEqual(['../src/ui/select.tsx']);
});

test('a stored value that the choices do not have is shown and sent as it is', () => {
  render(
    <form>
      <Select name="product" value="a" kept="Product A" choices={[{ value: 'b', label: 'Product B' }]} required />
    </form>,
    document.body,
  );
  expect(shown().selectedOptions[0]!.textContent).toBe('Product A');
  expect(sent()).toBe('a');
});

test('a required select without a value has no default', () => {
  render(
    <form>
      <Select name="product" value="" choices={[{ value: 'b', label: 'Product B' }]} required />
    </form>,
    document.body,
  );
  expect(sent()).toBe('');
  expect(document.querySelector('form')!.checkValidity()).toBe(false);
});

test('a list that is longer than its page is searched, and a search changes no choice', async () => {
  await setLanguage('en');
  const asked: string[] = [];
  const find = async (text: string) => (asked.push(text), { choices: [{ value: 'z', label: 'Product Z' }], more: false });
  render(
    <form>
      <Pick label="Product" findLabel="Find" list="test" first={{ choices: [{ value: 'b', label: 'Product B' }], more: true }} find={find} name="product" value="a" kept="Product A" required />
    </form>,
    document.body,
  );
  expect(sent()).toBe('a');
  const field = document.querySelector<HTMLInputElement>('input[type=search]')!;
  field.value = 'z';
  await act(() => void field.dispatchEvent(new Event('input', { bubbles: true })));
  await vi.waitFor(() => expect(shown().textContent).toContain('Product Z'));
  expect(asked).toEqual(['z']);
  expect(sent()).toBe('a');
  shown().value = 'z';
  await act(() => void shown().dispatchEvent(new Event('change', { bubbles: true })));
  expect(sent()).toBe('z');
  field.value = '';
  await act(() => void field.dispatchEvent(new Event('input', { bubbles: true })));
  await vi.waitFor(() => expect(shown().textContent).toContain('Product B'));
  expect(shown().selectedOptions[0]!.textContent).toBe('Product Z');
  expect(sent()).toBe('z');
});
