import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { storeDrawEntry, type DrawEntry } from '@seckill/client/tickets';
import { tabStore } from '../src/api/storage';
import { setLanguage } from '../src/i18n/text';
import { compare } from '../src/pages/draw';
import { DrawCheck } from '../src/pages/draw-check';
import { server } from './shop';

/** A draw as `seckill verify draw` accepts it. */
const proof = {
  commitment: '72cd6e8422c407fb6d098690f1130b7ded7ec2f7f5e1d30bd9d521f015363793',
  seed: '01'.repeat(32),
  nonce: '5f2c17a0b4e94d0c',
  number: '3550435389445179',
};
const part: DrawEntry = { ticketId: 'tkt_1', itemId: 'itm_1', nonce: proof.nonce, commitment: proof.commitment };

const ticket = (of: { commitment?: string; seed?: string | null; nonce?: string; number?: string | null } = {}) => {
  const { commitment, seed, nonce, number } = { ...proof, ...of };
  return { node: { __typename: 'QueueTicket', draw: { nonce, number }, item: { draw: { commitment, seed } } } };
};

beforeEach(() => setLanguage('en'));
afterEach(() => {
  render(null, document.body);
  tabStore.removeItem('draw:sal_1');
  vi.unstubAllGlobals();
});

const outcome = async (node: object) => {
  server({ TicketDraw: [node as Record<string, unknown>] });
  return compare(part);
};

test('a draw whose seed, commitment and number fit is right', async () => {
  expect(await outcome(ticket())).toEqual({
    state: 'compared',
    commitment: true,
    seed: true,
    number: true,
    values: { commitment: proof.commitment, seed: proof.seed, number: proof.number, computed: proof.number },
  });
});

test('what does not fit is named', async () => {
  const other = '02'.repeat(32);
  expect(await outcome(ticket({ number: '1' }))).toMatchObject({ commitment: true, seed: true, number: false });
  expect(await outcome(ticket({ nonce: 'chosen by the shop' }))).toMatchObject({ commitment: true, seed: true, number: false });
  expect(await outcome(ticket({ seed: other }))).toMatchObject({ commitment: true, seed: false, number: false });
  // A shop that replaces seed and commitment together is found out by the commitment that was kept.
  const replaced = '75877bb41d393b5fb8455ce60ecd8dda001d06316496b14dfa7f895656eeca4a';
  expect(await outcome(ticket({ seed: other, commitment: replaced }))).toMatchObject({ commitment: false, seed: false });
});

test('before the seed is public, and without a ticket, nothing is compared', async () => {
  expect(await outcome(ticket({ seed: null, number: null }))).toEqual({ state: 'soon' });
  expect(await outcome({ node: null })).toEqual({ state: 'gone' });
});

const show = (phase: 'UPCOMING' | 'LIVE' = 'LIVE') => act(() => render(<DrawCheck sale={{ id: 'sal_1' }} phase={phase} />, document.body));

test('the check is offered from the opening on, to those who took part', async () => {
  await show();
  expect(document.querySelector('[data-draw]')).toBeNull();
  storeDrawEntry(tabStore, 'sal_1', part);
  await show('UPCOMING');
  expect(document.querySelector('[data-draw]')).toBeNull();
  await show();
  expect(document.querySelector('[data-draw]')!.textContent).toBe('Check the draw');
});

const opened = async (node: object): Promise<string> => {
  server({ TicketDraw: [node as Record<string, unknown>] });
  storeDrawEntry(tabStore, 'sal_1', { ...part, ticketId: `tkt_${JSON.stringify(node).length}` });
  await show();
  const details = document.querySelector<HTMLDetailsElement>('[data-draw]')!;
  details.open = true;
  await act(() => void details.dispatchEvent(new Event('toggle')));
  await vi.waitFor(() => expect(document.querySelector('[data-step]')).not.toBeNull());
  return document.body.textContent!;
};

test('the page says what was checked, in both languages', async () => {
  const text = await opened(ticket());
  expect(text).toContain('The draw was fair to you');
  expect(text).toContain('It is above 78 % of all possible numbers');
  expect(document.querySelectorAll('[data-right="true"]')).toHaveLength(3);
  await act(() => setLanguage('zh'));
  await vi.waitFor(() => expect(document.body.textContent).toContain('抽签结果核验一致'));
});

test('a draw that does not match alarms, and shows the values', async () => {
  const text = await opened(ticket({ number: '12' }));
  expect(document.querySelector('[role="alert"]')!.textContent).toContain('The draw does not match');
  expect(document.querySelector('[data-step="number"]')!.getAttribute('data-right')).toBe('false');
  for (const value of [proof.seed, proof.commitment, proof.nonce, '12', proof.number]) expect(text).toContain(value);
});
