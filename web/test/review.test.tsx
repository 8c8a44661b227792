import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import type { AdminSale } from '../src/operator/acts';
import { Preview } from '../src/operator/preview';
import { Review } from '../src/operator/review';
import type { Previewed } from '../src/pages/sale-preview';
import { sale, server } from './shop';

beforeEach(async () => {
  await setLanguage('en');
  await prepare();
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const switches = { captchaRequired: true, captchaKinds: ['MATH'], permitRatio: 1.5, proofOfWorkMax: 0, inflowPerSecond: 0, reviewAccounts: 0, limitBurst: 0, limitPerSecond: 1 };
const hour = 3_600_000;

/** A sale in review, which opens in a day. */
function reviewed(fields: object = {}): AdminSale & Previewed {
  const { items, ...of } = sale({
    startsAt: new Date(Date.now() + 24 * hour).toISOString(),
    endsAt: new Date(Date.now() + 26 * hour).toISOString(),
    phase: 'UPCOMING',
  });
  const [item] = items;
  const listPrice = { amount: '399.00', currencyCode: 'CNY' };
  return {
    ...of, status: 'PENDING_APPROVAL', preheatAt: null, requireVerifiedContact: true, minimumAccountAge: 48, requiresAddress: true, hideExactStock: false, private: false, accessCodes: [], offerSeconds: null, switches,
    access: [{ kind: 'LIST', name: 'Members', source: 'vip', from: of.startsAt, afterSeconds: 0, keepUnits: 12, keepSeconds: 3600, keptUntil: new Date(Date.now() + 25 * hour).toISOString() }],
    items: [{ ...item!, goods: { ...item!.goods, listPrice, description: 'A fine thing.' } }], ...fields,
  } as AdminSale & Previewed;
}

/** The facts as they are shown, by their names. */
function facts(): Record<string, string> {
  const names = [...document.querySelectorAll('dt')];
  return Object.fromEntries(names.map((name) => [name.textContent!, name.nextElementSibling!.textContent!]));
}

test('a review shows all that is approved', () => {
  render(<Review sale={reviewed()} />, document.body);
  expect(facts()).toMatchObject({
    'Limit, all items': 'No limit',
    'Time to pay': '15 minutes',
    'Who may buy': expect.stringMatching(/List Members vip.*12 of each item kept until .*Upload members vip/),
    'Verified contact': 'Required',
    'Minimum account age': '2 days',
    'Delivery address': 'Required',
    'Stock shown to buyers': 'Exact stock',
    'Total value': '¥2,990',
    'Require a captcha': 'yes',
    'Captcha kinds': 'Arithmetic',
    'Proof-of-work difficulty': 'Default',
    'Permits per available unit': '1.5',
    'Admitted buyers per second': 'No limit',
    'Accounts in common for a review': 'Never',
    'Rate limit: calls in a window': 'Default',
  });
  expect(facts()).not.toHaveProperty('Rate limit: calls per second on average');
  expect(document.querySelector('li')!.textContent).toContain('List price ¥399 25% off');
});

test('what a sale does not require is said, too', () => {
  const own = { requireVerifiedContact: false, minimumAccountAge: 0, requiresAddress: false, hideExactStock: true, switches: { ...switches, limitBurst: 5 } };
  render(<Review sale={reviewed(own)} />, document.body);
  expect(facts()).toMatchObject({
    'Verified contact': 'Not required',
    'Minimum account age': 'Not required',
    'Delivery address': 'Not required',
    'Stock shown to buyers': 'In words only',
    'Rate limit: calls in a window': '5',
    'Rate limit: calls per second on average': '1',
  });
});

/** Opens the preview and waits until it is shown. */
async function open(sale: Previewed, hidden = false): Promise<void> {
  await act(() => render(<Preview sale={sale} hidden={hidden} />, document.body));
  const details = document.querySelector('details')!;
  details.open = true;
  await act(() => void details.dispatchEvent(new Event('toggle')));
  await vi.waitFor(() => expect(document.querySelector('[inert]')).not.toBeNull());
}
const page = (): string => document.querySelector('[inert]')!.textContent!;
const press = (name: string): Promise<void> => act(() => [...document.querySelectorAll<HTMLElement>('[role=tab]')].find(({ textContent }) => textContent === name)!.click());

test('a review shows the alternative text of a picture, and where there is none', () => {
  const [item] = reviewed().items;
  const shown = (imageAlt: string | null): string => {
    render(<Review sale={reviewed({ items: [{ ...item!, goods: { ...item!.goods, imageUrl: '/media/one.png', imageAlt } }] })} />, document.body);
    expect(document.querySelector('img')!.alt).toBe(''); // beside the name
    return document.querySelector('li')!.textContent!;
  };
  expect(shown('A lamp in the shape of a moon')).toContain('Alternative text: A lamp in the shape of a moon');
  expect(shown(null)).toContain('No alternative text: the name of the product is used');
});

test('the preview shows a sale before, at and after the opening, and sends nothing', async () => {
  const asked = server({});
  await open(reviewed());
  expect(page()).toContain('Opens in');
  expect(page()).toContain('Accounts must exist for 2 days');
  expect(page()).toContain('A fine thing.');
  expect(document.querySelector('[inert] [data-status]')!.getAttribute('data-status')).toBe('wait');
  await press('Open');
  expect(page()).toContain('10 of 10 left');
  const buy = document.querySelector<HTMLElement>('[inert] [data-button=buy]')!;
  expect(buy.textContent).toContain('Buy ·\u00a0¥299');
  await act(() => buy.click());
  await press('Over');
  expect(page()).toContain('This sale has ended');
  expect(document.querySelector('[inert] button')).toBeNull();
  expect(asked).toEqual([]);
});

test('the tabs of the preview are changed by the arrow keys', async () => {
  server({});
  await open(reviewed());
  const list = document.querySelector('[role=tablist]')!;
  await act(() => void list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true })));
  expect(document.activeElement!.textContent).toBe('Over');
  expect(document.querySelector('[role=tabpanel]')!.getAttribute('aria-labelledby')).toBe(document.activeElement!.id);
});

test('a preview of hidden stock has no numbers', async () => {
  server({});
  await open(reviewed(), true);
  expect(page()).toContain('In stock');
  expect(page()).not.toContain('10 of 10');
});
