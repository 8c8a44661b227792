import { afterEach, expect, test, vi } from 'vitest';
import { elements } from '../src/pages/stripe';

afterEach(() => vi.unstubAllGlobals());

test.each([
  ['pi_1_secret_2', 'confirmPayment'],
  ['seti_1_secret_2', 'confirmSetup'],
])('a form with %s is confirmed by %s', async (clientSecret, how) => {
  const confirm = vi.fn(() => Promise.resolve({}));
  const form = { mount: vi.fn(), on: (event: string, handle: () => void) => void (event === 'ready' && handle()) };
  vi.stubGlobal('Stripe', () => ({ elements: () => ({ create: () => form }), [how]: confirm }));
  const made = await elements({ clientSecret, publishableKey: 'pk_1', scriptUrl: 'https://js.stripe.com/x.js', locale: 'en', dark: false }, document.body);
  await made.confirm('https://shop.example/s/one');
  expect(confirm).toHaveBeenCalledWith(expect.objectContaining({ confirmParams: { return_url: 'https://shop.example/s/one' } }));
});
