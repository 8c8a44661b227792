/** The strip that shows an unpaid order on all other pages and tabs. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { checkScreen } from './axe';
import { clickAtBank, button, buy, signIn, demoFixture, status } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

const strip = (page: Page) => page.locator('[data-strip]');
const icon = (page: Page): Promise<string | null> => page.locator('link[rel=icon]').getAttribute('href');

test('an order that awaits payment is on every other page and tab, in the title and the icon, until it is paid', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', `/s/${it.demo.open.slug}`);
  const other = await page.context().newPage();
  await other.goto(`${it.demo.url}/account`);
  await other.getByRole('heading', { name: 'Password' }).waitFor();
  expect(await strip(other).count()).toBe(0);
  await buy(page);

  await strip(other).getByText(/^Pay ¥/).waitFor(); // without a reload
  expect(await strip(other).innerText()).toMatch(/\d+:\d\d/);
  for (const tab of [page, other]) {
    await expect.poll(() => tab.title()).toMatch(/^\d+:\d\d Pay ¥[\d,.]+ · /);
    expect(await icon(tab)).toContain('icon-alert');
  }
  expect(await strip(page).count()).toBe(0); // the page of the sale has the sheet
  await checkScreen(other, 'strip');
  for (const path of ['/', '/orders']) {
    const session = other.waitForResponse((response) => response.request().postDataJSON()?.operationName === 'RefreshSession');
    await other.goto(it.demo.url + path);
    await strip(other).waitFor();
    await session; // leaving before would lose the new session
  }
  await strip(other).getByRole('link').click();
  await other.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
  expect(await strip(other).count()).toBe(0); // this page is where it leads

  await page.goto(it.demo.url);
  await strip(page).waitFor();
  await other.getByRole('button', { name: /^Pay ¥/ }).click();
  await clickAtBank(other, 'Approve');
  await status(other, 'Paid').waitFor();
  await strip(page).waitFor({ state: 'detached' });
  for (const tab of [page, other]) {
    await expect.poll(() => tab.title()).not.toMatch(/Pay ¥/);
    expect(await icon(tab)).not.toContain('icon-alert');
  }
});

test('an order that is cancelled is not on other pages any more', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('button', { name: 'Cancel order', exact: true }).click();
  await page.getByRole('button', { name: 'Yes, cancel' }).click();
  await status(page, 'Cancelled').waitFor();
  await page.getByRole('link', { name: 'My orders' }).click();
  await page.locator('main li').first().waitFor();
  expect(await strip(page).count()).toBe(0);
});
