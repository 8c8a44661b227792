import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { Addresses } from '../src/pages/addresses';
import { phoneCountry } from '../src/pages/providers';
import { Sign } from '../src/pages/sign';
import { server } from './shop';

beforeEach(() => setLanguage('en'));
afterEach(() => {
  render(null, document.body);
  phoneCountry.value = undefined;
  vi.unstubAllGlobals();
});

const input = (name: string): HTMLInputElement => document.querySelector(`[name=${name}]`)!;
/** What is written below a field. */
const note = (name: string): string => {
  const id = input(name).getAttribute('aria-describedby');
  return id ? document.getElementById(id)!.textContent! : '';
};
const wrong = (name: string): boolean => input(name).getAttribute('aria-invalid') === 'true';
const type = (name: string, value: string): Promise<void> =>
  act(() => {
    input(name).value = value;
    input(name).dispatchEvent(new Event('input', { bubbles: true }));
  });
const leave = (name: string): void => {
  input(name).focus();
  input(name).blur();
};
const submit = (): Promise<void> => act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));

const providers = { signInProviders: [], serverInfo: { mail: false, phoneCountry: null } };

test('a field is checked once it was left, and from then on while it is typed', async () => {
  server({ SignInProviders: [providers] });
  await act(() => render(<Sign isNew />, document.body));
  await vi.waitFor(() => expect(phoneCountry.value).toBeNull());
  expect(note('password')).toBe('At least 10 characters');
  await type('password', 'short');
  expect(wrong('password')).toBe(false);
  leave('password');
  await vi.waitFor(() => expect(note('password')).toBe('At least 10 characters.'));
  expect(wrong('password')).toBe(true);
  await type('password', 'a long enough password');
  expect(wrong('password')).toBe(false);
  expect(note('password')).toBe('At least 10 characters');
  await type('password', 'qwertyuiop');
  expect(note('password')).toContain('too easy to guess');
  leave('account');
  await vi.waitFor(() => expect(note('account')).toBe('Fill in this field.'));
  await type('account', '13800138000');
  expect(note('account')).toContain('with its country code');
  await type('account', '+86 138 0013 8000');
  expect(wrong('account')).toBe(false);
});

test('an error waits until the pointer is released: the click below it would be lost', async () => {
  server({ SignInProviders: [providers] });
  await act(() => render(<Sign isNew />, document.body));
  dispatchEvent(new Event('pointerdown'));
  leave('displayName');
  await new Promise((done) => setTimeout(done, 20));
  expect(wrong('displayName')).toBe(false);
  dispatchEvent(new Event('pointerup'));
  await vi.waitFor(() => expect(wrong('displayName')).toBe(true));
});

test('a form with errors is not sent; the first faulty field has the focus', async () => {
  server({ SignInProviders: [providers] });
  await act(() => render(<Sign isNew />, document.body));
  await type('displayName', 'Ann');
  await submit();
  expect(document.activeElement).toBe(input('account'));
  expect(['displayName', 'account', 'password'].map(wrong)).toEqual([false, true, true]);
  expect(document.querySelector('dialog')).toBeNull();
  await act(() => setLanguage('zh'));
  expect(note('account')).toBe('请填写此项。');
});

test('refusals of the server stand at their fields until these change; others above the button', async () => {
  const failures = [
    { __typename: 'InputError', code: 'INVALID_INPUT', message: 'Phone number: at least 5 characters.', path: ['input', 'phone'] },
    { __typename: 'BasicError', code: 'CONFLICT', message: 'You have five addresses.', path: ['input'] },
  ];
  const refused = { saveAddress: { address: null, userErrors: failures } };
  const asked = server({ MyAddresses: [{ myAddresses: [] }], SaveAddress: [refused] });
  await act(() => render(<Addresses />, document.body));
  await vi.waitFor(() => expect(document.querySelector('button')).not.toBeNull());
  await act(() => document.querySelector('button')!.click());
  const right = { name: ' Lin Xiaoyu', phone: '+86 138 0000 1111', country: 'cn', city: 'Hangzhou', street: '90 Wensan Road' };
  for (const [name, value] of Object.entries(right)) await type(name, value);
  await submit();
  await vi.waitFor(() => expect(wrong('phone')).toBe(true));
  expect(asked.at(-1)!.variables.input).toMatchObject({ name: 'Lin Xiaoyu', country: 'CN', region: null });
  expect(document.activeElement).toBe(input('phone'));
  expect(document.querySelector('[role=alert]')!.textContent).toBe('You have five addresses.');
  await type('phone', '+86 138 0000 1112');
  expect(wrong('phone')).toBe(false);
});
