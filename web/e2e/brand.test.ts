/** The look of an installation: name, logo and accent are there with the first paint, and nothing moves. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { opened, openSales } from './api';
import { checkScreen } from './axe';
import { button, browserFixture, signIn, startDemo, type Demo } from './shop';

const it = browserFixture();
const folder = mkdtempSync(join(tmpdir(), 'brand-'));
const logo = (colour: string): string => {
  const file = join(folder, `${colour}.svg`);
  writeFileSync(file, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><rect width="120" height="40" rx="8" fill="${colour}"/></svg>`);
  return file;
};
let demo: Demo;

beforeAll(async () => {
  demo = await startDemo({
    SECKILL_LIMITS: 'off',
    'shop.name': 'Fox & Hare',
    'shop.accent': '#b3261e',
    'shop.logo': logo('black'),
    'shop.logo_dark': logo('white'),
  });
  await opened(demo, demo.soon.slug); // or the list would change while it is looked at
});
afterAll(async () => {
  await demo?.stop();
  rmSync(folder, { recursive: true });
});

test('name, logo and accent of the installation are on the pages, and nothing moves', async () => {
  const page = await it.page();
  await page.addInitScript(() => {
    const shifts: number[] = ((window as unknown as { shifts: number[] }).shifts = []);
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => shifts.push((entry as unknown as { value: number }).value))).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(demo.url);
  const mark = page.locator('header img');
  await mark.waitFor();
  expect([await mark.getAttribute('alt'), await mark.getAttribute('width'), await mark.getAttribute('height')]).toEqual(['Fox & Hare', '96', '32']);
  expect(await page.title()).toContain('Fox & Hare');
  const light = await mark.getAttribute('src');
  expect(await page.evaluate(() => (window as unknown as { shifts: number[] }).shifts)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(() => mark.getAttribute('src')).not.toBe(light);
  await page.emulateMedia({ colorScheme: 'light' });
  await checkScreen(page, 'brand-list');

  const cdp = await page.context().newCDPSession(page);
  const { url, errors, data } = await cdp.send('Page.getAppManifest');
  expect([url, errors]).toEqual([`${demo.url}/manifest.webmanifest`, []]);
  const app = JSON.parse(data!) as { name: string; theme_color: string; icons: { src: string; sizes: string }[] };
  expect([app.name, app.theme_color]).toEqual(['Fox & Hare', '#b3261e']);
  const drawn = await page.evaluate(
    (icons) =>
      Promise.all(
        icons.map(async ({ src }) => {
          const icon = new Image();
          icon.src = src;
          await icon.decode();
          return `${icon.naturalWidth}x${icon.naturalHeight}`;
        }),
      ),
    app.icons,
  );
  expect(drawn).toEqual(app.icons.map(({ sizes }) => sizes));

  await signIn(page, demo, 'alice', `/s/${demo.open.slug}`);
  await button(page, 'buy').waitFor();
  expect(await button(page, 'buy').evaluate((main) => getComputedStyle(main).backgroundColor)).toBe('rgb(179, 38, 30)');
  await checkScreen(page, 'brand-sale');

  const [slug] = await openSales(demo, [{ title: 'Forest', currencyCode: 'CNY', price: '10.00', listPrice: '20.00', accent: '#0b6e4f' }]);
  await page.goto(`${demo.url}/s/${slug}`);
  await button(page, 'buy').waitFor();
  expect(await button(page, 'buy').evaluate((main) => getComputedStyle(main).backgroundColor)).toBe('rgb(11, 110, 79)');
  await checkScreen(page, 'brand-sale-accent');
});
