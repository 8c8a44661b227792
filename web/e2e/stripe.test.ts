import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkScreen } from './axe';
import { DECLINED, FakeStripe } from './fake-stripe';
import { button, buy, browserFixture, demoCredentials, signIn, startDemo, status, type Demo } from './shop';

/** Number of failed calls in a row after which a provider counts as unavailable. */
const AWAY_AFTER = 5;

const it = browserFixture();

/** A shop that takes cards at a server that stands in for Stripe. */
function shop(embedded: boolean): { demo: Demo; stripe: FakeStripe } {
  const its = {} as { demo: Demo; stripe: FakeStripe };
  beforeAll(async () => {
    its.stripe = await new FakeStripe().start();
    its.demo = await startDemo({ SECKILL_LIMITS: 'off', ...its.stripe.settings(embedded) });
    its.stripe.shop = its.demo.url;
  });
  afterAll(async () => {
    await its.demo?.stop();
    its.stripe?.stop();
  });
  return its;
}

/** Buys, chooses the card and presses the button with the amount. */
async function payByCard(page: Page, demo: Demo, who: string): Promise<void> {
  await signIn(page, demo, demoCredentials(who), `/s/${demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('radio', { name: 'Card' }).check();
  await page.getByRole('button', { name: /^Pay ¥/ }).click();
}

describe('on the page of the order', () => {
  const its = shop(true);

  test('a declined card is tried again without leaving, and only this page loads from elsewhere', async () => {
    const page = await it.page();
    const policies = new Map<string, string>();
    page.on('response', async (response) => {
      if (response.request().isNavigationRequest()) policies.set(new URL(response.url()).pathname, (await response.allHeaders())['content-security-policy'] ?? '');
    });
    await payByCard(page, its.demo, 'alice');
    await page.waitForURL('**/orders/*/pay');
    const card = page.getByLabel('Card number');
    const failed = page.getByRole('main').getByRole('alert'); // after 4 seconds without an answer of the provider
    await card.or(failed).first().waitFor();
    if (await failed.count()) await page.reload();
    await card.fill(DECLINED);
    await checkScreen(page, 'pay-card');
    const send = page.getByRole('button', { name: /^Pay ¥/ });
    await send.click();
    await page.getByRole('alert').filter({ hasText: 'Your card was declined.' }).waitFor();
    await card.fill('4242 4242 4242 4242');
    await send.click();
    await page.waitForURL(/\/orders\/\w+(\?paid)?$/, { waitUntil: 'commit' }); // the page goes on to its own address
    await status(page, 'Paid').waitFor();
    for (const [path, policy] of policies) expect(policy.includes(its.stripe.host), path).toBe(path.endsWith('/pay'));
    expect([...policies.keys()].filter((path) => path.endsWith('/pay'))).toHaveLength(1);
  });
});

describe('on a page of the provider', () => {
  const its = shop(false);

  test('a buyer pays there and comes back to the paid order', async () => {
    const page = await it.page();
    await payByCard(page, its.demo, 'alice');
    const there = page.getByRole('button', { name: 'Pay with the test card' });
    const failed = page.getByRole('main').getByRole('alert'); // after 4 seconds without an answer of the provider
    await there.or(failed).first().waitFor();
    if (await failed.count()) await page.getByRole('button', { name: /^Pay ¥/ }).click();
    await there.click();
    await page.waitForURL(`${its.demo.url}/orders/*`);
    await status(page, 'Paid').waitFor();
  });

  test('a provider that does not answer cannot be chosen, with the reason, until it answers', async () => {
    const page = await it.page();
    its.stripe.away = true;
    await payByCard(page, its.demo, 'bob');
    const failed = page.getByRole('main').getByRole('alert');
    const send = page.getByRole('button', { name: /^Pay ¥/ });
    const failAgain = async (): Promise<void> => {
      await failed.waitFor();
      await send.click();
      await page.locator('button .spin').waitFor({ state: 'detached' });
    };
    for (let calls = 1; calls < AWAY_AFTER; calls++) await failAgain();
    const other = await it.page();
    await signIn(other, its.demo, demoCredentials('bob'), new URL(page.url()).pathname);
    const card = other.getByRole('radio', { name: 'Card' });
    // The provider counts as unavailable for 30 seconds after a failed call: a slow page needs another failed call.
    const showsReason = async (reason: string): Promise<void> => {
      do {
        await failAgain();
        await other.reload();
      } while (!(await other.getByText(reason).waitFor({ timeout: 20_000 }).then(() => true, () => false)));
    };
    await showsReason('Not available at the moment. Please try again shortly.');
    expect([await card.isDisabled(), await card.isChecked()]).toEqual([true, false]);
    await checkScreen(other, 'pay-away');
    await other.locator('header button[lang]').click();
    await showsReason('暂时不可用，请稍后再试。');

    its.stripe.away = false;
    const there = page.getByRole('button', { name: 'Pay with the test card' });
    await send.click(); // the payment that was begun is sent again
    await there.or(failed).first().waitFor();
    if (await failed.count()) await send.click();
    await there.waitFor();
    await other.reload();
    await other.getByRole('radio').first().waitFor();
    expect(await other.getByRole('radio', { disabled: true }).count()).toBe(0);
    expect(await other.getByText('暂时不可用').count()).toBe(0);
  });
});
