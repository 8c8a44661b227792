/** Buyers who come back to a sale on lines of 0, 400 and 2,000 ms: what they missed is explained, and a pause is not an end. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endSale, opened, pauseSale, resumeSale, ticketOf, turnExpired } from './api';
import { slowLine } from './line';
import { browserFixture, button, checkByBrowser, signIn } from './shop';
import { startSite, type Site } from './site';

const it = browserFixture();
let site: Site;
beforeAll(async () => {
  site = await startSite({ SECKILL_PATH_TTL: '5s' });
});
afterAll(() => site?.stop());

const LINES = [0, 400, 2_000];
const sheet = (page: Page) => page.locator('section.sheet');
/** Whether the page has ever shown a text since it was opened. */
const saw = (page: Page, text: string): Promise<boolean> => page.evaluate((words) => (window as unknown as { seen: string }).seen.includes(words), text);

test('a turn that expired while the buyer was away is explained; a pause, its end and the end of the sale are named', { timeout: 1_200_000 }, async () => {
  const { slug, buyers } = await site.seed({ users: LINES.length, stock: LINES.length, more: ['--opens-in', '120s'] });
  const visits = await Promise.all(
    LINES.map(async (line, n) => {
      const page = await it.page();
      await slowLine(page.context(), line);
      await page.addInitScript(() => {
        (window as unknown as { seen: string }).seen = '';
        new MutationObserver(() => void ((window as unknown as { seen: string }).seen += document.getElementById('app')?.textContent ?? '')).observe(document, { childList: true, subtree: true, characterData: true });
      });
      await signIn(page, site, buyers[n]!, `/s/${slug}`);
      await button(page, 'join').click();
      await checkByBrowser(page);
      await button(page, 'joined').waitFor();
      const ticket = await ticketOf(site, buyers[n]!, slug);
      expect(await saw(page, `${LINES.length} of ${LINES.length} left`)).toBe(true);
      expect(await saw(page, 'Almost gone')).toBe(false);
      const startsAt = Date.parse((await page.locator('main time').first().getAttribute('datetime'))!);
      await expect.poll(() => Date.now(), { interval: 200, timeout: 200_000 }).toBeGreaterThan(startsAt - 10_000); // a ticket is kept for 30 s
      await page.goto('about:blank');
      return { page, ticket };
    }),
  );
  await opened(site, slug);
  for (const [n, { ticket }] of visits.entries()) await turnExpired(site, buyers[n]!, ticket);
  const pages = visits.map(({ page }) => page);

  for (const [n, page] of pages.entries()) {
    await page.goto(`${site.url}/s/${slug}`);
    await sheet(page).getByText('Your turn passed: it was not used in time.').waitFor();
    expect(await saw(page, 'Your turn expired'), `${LINES[n]} ms`).toBe(false); // no message above it that repeats it
    await button(page, 'buy').waitFor(); // there is still something to buy
    expect(await saw(page, 'updated ')).toBe(false); // on a live page
  }
  await pauseSale(site, slug, 'Back at noon.');
  for (const page of pages) {
    await sheet(page).getByText('Paused by the shop').waitFor();
    expect(await saw(page, 'has ended')).toBe(false);
  }
  await resumeSale(site, slug);
  for (const page of pages) await button(page, 'buy').waitFor();
  await endSale(site, slug, 'Enough for today.');
  for (const page of pages) await sheet(page).getByText('This sale has ended').waitFor();
});
