/** A draw: two buyers enter, one is offered the unit and buys it, and both check the draw. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openSales } from './api';
import { checkScreen } from './axe';
import { button, checkByBrowser, demoFixture, signIn } from './shop';

const it = demoFixture();

test('two buyers enter a draw, one buys what is offered, the other stays in line, and the browser checks the draw', async () => {
  const [slug] = await openSales(it.demo, [{ title: 'Draw sale', currencyCode: 'EUR', price: '49.00', listPrice: '99.00', stock: [1], draw: { entrySeconds: 60, offerSeconds: 1_800 } }]);
  const path = `/s/${slug}`;
  const pages = [await it.page(), await it.page()] as const;
  for (const [n, page] of pages.entries()) {
    await signIn(page, it.demo, n === 0 ? 'alice' : 'bob', path);
    await button(page, 'enter').click();
    await checkByBrowser(page);
    await button(page, 'entered').waitFor();
  }
  await pages[0].getByText('You are in').first().waitFor();
  await checkScreen(pages[0], 'draw-in');

  const outcome = (page: Page) => button(page, 'buy').or(button(page, 'waiting'));
  for (const page of pages) await outcome(page).waitFor({ timeout: 300_000 });
  await expect.poll(async () => (await Promise.all(pages.map((page) => button(page, 'buy').count()))).reduce((sum, n) => sum + n)).toBe(1);
  const winner = (await button(pages[0], 'buy').count()) ? pages[0] : pages[1];
  const loser = winner === pages[0] ? pages[1] : pages[0];
  await checkScreen(winner, 'draw-offered');
  await loser.getByText('You drew number 2').first().waitFor();
  await checkScreen(loser, 'draw-lost');

  await button(winner, 'buy').click();
  await button(winner, 'pay').waitFor();

  const file = loser.locator('[data-draw-file]');
  await file.locator('summary').click();
  await file.locator('[data-rank="2"]').waitFor();
  expect(await file.locator('[data-right="false"]').count()).toBe(0);
  await checkScreen(loser, 'draw-file');
});
