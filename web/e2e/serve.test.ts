/** Tests against `serve` on Postgres and Redis, with worker and API in separate processes. */
import { expect, test } from 'vitest';
import { checkScreen } from './axe';
import { journeys } from './journeys';
import { clickAtBank, button, buy, checkByBrowser, browserFixture, signIn } from './shop';
import { siteEnvironment } from './environment';

const it = browserFixture();
const environment = siteEnvironment();

test('in the queue, in the waiting room and in the draw a buyer sees where they stand', async () => {
  const { site } = environment;
  const now = await site.seed({ users: 2, stock: 1, more: ['--permit-ratio', '1'] });
  const [first, second, early] = await Promise.all([it.page(), it.page(), it.page()]);
  await signIn(first, site, now.buyers[0]!, `/s/${now.slug}`);
  let send = (): void => {};
  const sent = new Promise<void>((resolve) => (send = resolve));
  await first.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName === 'PlaceOrder') await sent;
    await route.continue().catch(() => {}); // the page may have given this one up, and asked again
  });
  const asked = first.waitForRequest((request) => request.url().endsWith('/graphql') && request.postDataJSON()?.operationName === 'PlaceOrder');
  await button(first, 'buy').click();
  await checkByBrowser(first);
  await asked;
  await button(first, 'sending').waitFor();
  await checkScreen(first, 'sending');

  await signIn(second, site, now.buyers[1]!, `/s/${now.slug}`); // the one permit is out
  await button(second, 'buy').click();
  await checkByBrowser(second);
  await second.getByText('You are next').waitFor();
  await checkScreen(second, 'waiting-room');

  send();
  const again = first.getByRole('button', { name: 'Try again' }); // after half a minute without an answer
  await button(first, 'queue').or(again).waitFor();
  if (await again.isVisible()) await again.click();
  await button(first, 'queue').waitFor(); // no worker runs yet
  await first.getByText('Reserved for you').waitFor();
  await checkScreen(first, 'queue');

  const later = await site.seed({ users: 1, stock: 1, more: ['--opens-in', '3m'] });
  await signIn(early, site, later.buyers[0]!, `/s/${later.slug}`);
  await early.getByRole('button', { name: 'Join the draw' }).click();
  await checkByBrowser(early);
  await early.getByText('You are in the draw').waitFor();
  await checkScreen(early, 'draw');
});

journeys(it, environment);

test('an operator decides on a dead letter and on a payment of the wrong amount', async () => {
  const { site } = environment;
  await site.startWorker();
  await site.poison();
  const { slug, buyers } = await site.seed({ users: 1, stock: 1 });
  const buyer = await it.page();
  await signIn(buyer, site, buyers[0]!, `/s/${slug}`);
  await buy(buyer);
  await button(buyer, 'pay').click();
  await buyer.getByRole('link', { name: 'Open the payment page' }).waitFor();
  await site.overcharge();
  await clickAtBank(buyer, 'Approve');

  const page = await it.page();
  await signIn(page, site, 'operator', '/operate/aside');
  const acts = page.getByRole('button', { name: /^(Drop|Refund ¥.*)$/ });
  const again = async (): Promise<number> => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return acts.count();
  };
  await expect.poll(again, { timeout: 120_000, interval: 500 }).toBe(2);
  await checkScreen(page, 'aside');
  const sheet = page.getByRole('dialog');
  for (const [name, file] of [['Show content', 'aside-inside'], ['Retry', 'aside-replay'], ['Drop', 'aside-drop'], [/^Refund ¥/, 'aside-return']] as const) {
    await page.getByRole('button', { name }).click();
    await (name === 'Show content' ? sheet.getByText('of no sense') : sheet.getByLabel('Reason')).waitFor();
    await checkScreen(page, file);
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
  }
  for (const [name, reason] of [['Drop', 'It says nothing.'], [/^Refund ¥/, 'A cent too much.']] as const) {
    await page.getByRole('button', { name }).click();
    await sheet.getByLabel('Reason').fill(reason);
    await sheet.getByRole('button', { name }).click();
    await sheet.waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('H1'); // its row is gone
  }
  await page.getByText('None. Every message was handled.').waitFor();
  await page.getByText('None. Every payment belongs to an order.').waitFor();
  await page.getByText('It says nothing.').waitFor();
  await checkScreen(page, 'aside-decided');
});
