/** Journeys against `serve` on Postgres and Redis, with the process that writes orders apart from the one that answers. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atTheBank, button, buy, checkByBrowser, curtain, sent, signIn, status } from './shop';
import { faultsInBoth } from './axe';
import { startSite, type Site } from './site';

const it = curtain();
let site: Site;
beforeAll(async () => {
  site = await startSite({ SECKILL_WAITLIST_OFFER: '10m' });
});
afterAll(() => site?.stop());

/** Where the pictures of a screen go, with SCREENS=1. */
const shot = (name: string): string | null => (process.env['SCREENS'] ? join(import.meta.dirname, '../screens', name) : null);

const pill = (page: Page, state: string) => page.locator(`[data-line="${state}"]`);

test('a line that is cut in mid-queue costs nothing: the order is heard of when it is back', async () => {
  const { slug, buyers } = await site.seed({ users: 1, stock: 3 });
  const page = await it.page();
  let blocked = false;
  const open = new Set<{ close(options: { code: number }): Promise<void> }>();
  await page.routeWebSocket('**/graphql', (socket) => {
    if (blocked) return void socket.close({ code: 1013 });
    socket.connectToServer();
    open.add(socket);
  });
  await signIn(page, site, buyers[0]!, `/s/${slug}`);
  const names = sent(page);
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'queue').waitFor(); // nobody writes orders yet
  await page.getByText('Your unit is held').waitFor();
  blocked = true;
  for (const socket of open) await socket.close({ code: 1013 });
  await pill(page, 'retrying').waitFor();
  await button(page, 'queue').waitFor();
  await site.startWorker();
  blocked = false;
  await button(page, 'pay').waitFor();
  expect(names.filter((name) => name === 'PlaceOrder')).toHaveLength(1);
});

test('a buyer pays, and the other tab sees it', async () => {
  await site.startWorker();
  const { slug, buyers } = await site.seed({ users: 1, stock: 3 });
  const page = await it.page();
  await signIn(page, site, buyers[0]!, `/s/${slug}`);
  const other = await page.context().newPage();
  await other.goto(`${site.url}/s/${slug}`);
  await button(other, 'buy').waitFor();
  await buy(page);
  await button(other, 'pay').waitFor();
  await button(page, 'pay').click();
  await page.getByRole('button', { name: /^Pay ¥/ }).click();
  await atTheBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  await button(other, 'order').waitFor();
});

test('an order that is not paid lapses under the eyes of the buyer, who may try again', async () => {
  await site.startWorker();
  const { slug, buyers } = await site.seed({ users: 1, stock: 1, more: ['--payment-window', '10s'] });
  const page = await it.page();
  await signIn(page, site, buyers[0]!, `/s/${slug}`);
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await page.getByText('You got one').waitFor();
  await page.goto(`${site.url}/orders`);
  await page.locator('main li a').first().click();
  await status(page, 'Not paid in time').waitFor();
  await page.locator('main dl a').click();
  await button(page, 'buy').click();
  await page.getByText('You got one').waitFor();
});

test('who finds it sold out waits in line, is told when a unit comes back, and takes it', async () => {
  await site.startWorker();
  const { slug, buyers } = await site.seed({ users: 3, stock: 1 });
  const [first, second, third] = await Promise.all(buyers.map(() => it.page({ permissions: ['notifications'], reducedMotion: 'reduce' })));
  await signIn(first!, site, buyers[0]!, `/s/${slug}`);
  await buy(first!);
  for (const [n, page] of [second!, third!].entries()) {
    await signIn(page, site, buyers[n + 1]!, `/s/${slug}`);
    await button(page, 'waitlist').click();
    await button(page, 'waiting').waitFor();
  }
  await second!.getByText('You are next in line').waitFor();
  await third!.getByText('Ahead of you on the waitlist: 1').waitFor();
  expect(await faultsInBoth(third!, shot('waitlist'))).toEqual([]);

  await button(first!, 'pay').click();
  await first!.getByRole('button', { name: 'Cancel the order' }).click();
  await first!.getByRole('button', { name: 'Cancel it' }).click();
  await second!.getByText('A unit is held for you').first().waitFor();
  await second!.getByText('Time left to buy it').waitFor();
  expect(await faultsInBoth(second!, shot('offer'))).toEqual([]);
  const names = sent(second!);
  await button(second!, 'buy').click();
  await second!.getByText('You got one').waitFor(); // no captcha, no path: the offer is the way in
  expect(names.filter((name) => name === 'PlaceOrder')).toHaveLength(1);
  expect(names).not.toContain('CreateCaptcha');
  await third!.getByRole('button', { name: 'Leave the waitlist' }).click();
  await button(third!, 'waitlist').waitFor();
});

test('a message that nobody can handle is set aside, looked at and dropped by an operator', async () => {
  await site.startWorker();
  await site.poison();
  const page = await it.page();
  await signIn(page, site, await site.operator(), '/operate/aside');
  await expect
    .poll(
      async () => {
        await page.getByRole('button', { name: 'Look again' }).click();
        return page.getByRole('button', { name: 'Give up' }).count();
      },
      { timeout: 60_000, interval: 500 },
    )
    .toBe(1);
  await page.getByRole('button', { name: 'Look inside' }).click();
  await page.getByRole('dialog').getByText('of no sense').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Give up' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('It says nothing.');
  await page.getByRole('dialog').getByRole('button', { name: 'Give up' }).click();
  await page.getByText('None. Every message was handled.').waitFor();
  await page.getByText('It says nothing.').waitFor();
});
