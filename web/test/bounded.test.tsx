import { render, type ComponentChild } from 'preact';
import { useSignal } from '@preact/signals';
import { act } from 'preact/test-utils';
import { afterEach, expect, test } from 'vitest';
import { bounded } from '../src/forms/bounded';
import { setLanguage } from '../src/i18n/text';

const sources = import.meta.glob<string>('../src/**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true });

afterEach(() => render(null, document.body));

function show(form: ComponentChild): HTMLInputElement {
  render(form, document.body);
  return document.querySelector<HTMLInputElement>('input, textarea')!;
}
function type(field: HTMLInputElement, value: string): string {
  field.value = value;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  return field.validationMessage;
}

test('no field has a bound of HTML, which would count an emoji as two and cut what is pasted', () => {
  expect(Object.keys(sources).length).toBeGreaterThan(100);
  expect(Object.entries(sources).filter(([, text]) => /\b(?:max|min)Length=/.test(text)).map(([path]) => path)).toEqual([]);
});

test('a field of 100 characters accepts 100 emoji, and names the bound for 101', async () => {
  await setLanguage('en');
  for (const form of [<input ref={bounded({ most: 100 })} />, <textarea ref={bounded({ most: 100 })} />]) {
    const field = show(form);
    expect(type(field, '🐼'.repeat(100))).toBe('');
    expect(type(field, '🐼'.repeat(101))).toBe('At most 100 characters.');
    expect(type(field, ` ${'e\u0301'.repeat(100)}\n`)).toBe(''); // stored as 100
    expect(type(field, '')).toBe('');
    render(null, document.body);
  }
});

test('a field that needs ten characters refuses five emoji; whether it may be empty is said by required', async () => {
  await setLanguage('en');
  const field = show(<input ref={bounded({ least: 10, most: 128 })} />);
  expect(type(field, '🐼'.repeat(5))).toBe('At least 10 characters.');
  expect(type(field, '🐼'.repeat(10))).toBe('');
  expect(type(field, '')).toBe('');
});

test('a value that the page sets itself is checked too', async () => {
  await setLanguage('en');
  let set = (_: string): void => {};
  function Bound() {
    const value = useSignal('🐼');
    set = (next) => void (value.value = next);
    return <input value={value.value} ref={bounded({ most: 2 })} />;
  }
  const field = show(<Bound />);
  await act(() => set('🐼🐼🐼'));
  expect(field.validationMessage).toBe('At most 2 characters.');
  await act(() => set('🐼🐼'));
  expect(field.validationMessage).toBe('');
});
