import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { currentUser } from '../src/api/session';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { Codes } from '../src/operator/codes';
import type { AdminSale } from '../src/operator/acts';
import { CodeForm, CodeWaits, useLinkedCode } from '../src/pages/sale-code';
import { sale, server } from './shop';

beforeEach(async () => {
  await setLanguage('en');
  await prepare();
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
  currentUser.value = null;
  sessionStorage.clear();
  history.replaceState(null, '', '/');
});

const press = { kind: 'CODE' as const, name: 'Press', from: '2026-11-20T12:00:00.000Z' };
const refused = (code: string) => ({ redeemAccessCode: { sale: null, userErrors: [{ __typename: 'BasicError', code, message: 'This code has been used.', path: ['input', 'code'] }] } });

function Linked({ reload }: { reload: () => void }) {
  const { waits, why } = useLinkedCode('one', reload);
  return <>{waits && <CodeWaits />}{why && <p role="alert">{why}</p>}</>;
}

test('the code of a link leaves the address, waits for a user and is redeemed', async () => {
  history.replaceState(null, '', '/s/one?item=itm_1&code=abc');
  const asked = server({ RedeemAccessCode: [{ redeemAccessCode: { sale: { id: 'sal_1' }, userErrors: [] } }] });
  const reload = vi.fn();
  await act(() => render(<Linked reload={reload} />, document.body));
  expect(location.pathname + location.search).toBe('/s/one?item=itm_1');
  expect(document.querySelector('[role=status]')!.textContent).toContain('Sign in to use it.');
  expect(asked).toEqual([]);
  await act(() => render(null, document.body));
  currentUser.value = { id: 'usr_1', displayName: 'A' } as typeof currentUser.value; // signed in on another page of the tab
  await act(() => render(<Linked reload={reload} />, document.body));
  await vi.waitFor(() => expect(reload).toHaveBeenCalledOnce());
  expect(asked.map(({ variables }) => variables.input)).toEqual([{ slug: 'one', code: 'abc' }]);
  expect(sessionStorage.getItem('code one')).toBeNull();
});

test('a code that is refused says why, and others may be typed', async () => {
  currentUser.value = { id: 'usr_1', displayName: 'A' } as typeof currentUser.value;
  const of = sale({ access: [press], viewer: { ...({} as NonNullable<ReturnType<typeof sale>['viewer']>), access: { from: null, rule: null } } });
  server({ RedeemAccessCode: [refused('CODE_USED'), { redeemAccessCode: { sale: { id: 'sal_1' }, userErrors: [] } }] });
  const reload = vi.fn();
  await act(() => render(<CodeForm sale={of} reload={reload} />, document.body));
  const send = async (): Promise<void> => {
    document.querySelector<HTMLInputElement>('[name=code]')!.value = '2g8kq4a';
    await act(() => void document.querySelector('form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  };
  await send();
  await vi.waitFor(() => expect(document.querySelector('[role=alert]')?.textContent).toBe('This code has been used.'));
  await send();
  await vi.waitFor(() => expect(reload).toHaveBeenCalledOnce());
  const mine = { ...of, viewer: { ...of.viewer!, access: { from: press.from, rule: { kind: 'CODE' as const, name: 'Press' } } } };
  await act(() => render(<CodeForm sale={mine} reload={reload} />, document.body));
  expect(document.querySelector('form')).toBeNull();
});

test('operators create codes for a rule and revoke a batch', async () => {
  const batch = { number: 1, source: 'press', codes: 200, uses: 1, expiresAt: null, revoked: false, revokedCodes: 2, valid: true };
  const of = { ...sale(), status: 'LIVE', access: [{ ...press, source: 'press' }], accessCodes: [batch] } as unknown as AdminSale;
  const asked = server({
    CreateAccessCodes: [{ createAccessCodes: { batch: { number: 2 }, userErrors: [] } }],
    RevokeAccessCodes: [{ revokeAccessCodes: { batch: { number: 1 }, userErrors: [] } }],
  });
  const reload = vi.fn();
  render(<Codes sale={of} reload={reload} />, document.body);
  expect(document.querySelector('li')!.textContent).toContain('Batch 1 press · 200 codes · units per code: 1');
  const open = (name: string): Promise<void> => act(() => [...document.querySelectorAll('button')].find((each) => each.textContent!.startsWith(name))!.click());
  const submit = (): Promise<void> => act(() => void document.querySelector('dialog form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  await open('Create codes');
  document.querySelector<HTMLInputElement>('[name=codes]')!.value = '50';
  await submit();
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
  await open('Revoke');
  await submit();
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(2));
  expect(asked.map(({ variables }) => variables.input)).toEqual([
    { saleId: 'sal_1', source: 'press', codes: 50, uses: 1, expiresAt: null, note: null },
    { saleId: 'sal_1', batch: 1, number: null, note: null },
  ]);
});
