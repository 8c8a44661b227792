/** What a buyer is shown on lines of 0, 400 and 2,000 ms: it is true, is about the chosen item, and never goes back. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { cancelOrders, openSales } from './api';
import { shiftsOf } from './axe';
import { siteEnvironment } from './environment';
import { slowLine } from './line';
import { browserFixture, button, buy, checkByBrowser, recordOperations, signIn, type Credentials } from './shop';

const it = browserFixture();
const environment = siteEnvironment();
beforeAll(() => environment.startWorker());

/** The lines, in ms for a round trip; `make test` runs the one in the middle. */
const LINES = process.env['SECKILL_JOURNEYS'] === 'short' ? [400] : [0, 400, 2_000];

/** A page on a line, signed in, at a sale. It records each kind of button that it shows, and each alert. */
async function open(line: number, who: Credentials, path: string, viewport = { width: 1280, height: 800 }): Promise<Page> {
  const page = await it.page({ viewport });
  await slowLine(page.context(), line);
  await page.addInitScript(() => {
    const seen: string[] = ((window as unknown as { seen: string[] }).seen = []);
    const note = (text: string): void => void (seen.at(-1) !== text && seen.push(text));
    new MutationObserver(() => {
      const kind = document.querySelector('.sheet')?.getAttribute('data-status');
      if (kind) note(kind);
      const alert = document.querySelector('.sheet [role=alert]')?.textContent;
      if (alert) note(`alert: ${alert}`);
    }).observe(document, { childList: true, subtree: true, attributes: true });
  });
  await signIn(page, environment.site, who, path);
  return page;
}

const seen = (page: Page): Promise<string[]> => page.evaluate(() => (window as unknown as { seen: string[] }).seen);
const sheet = (page: Page) => page.locator('section.sheet');

test.each(LINES)('on a line of %i ms the status of a purchase never goes back, and the layout stays', { timeout: 1_200_000 }, async (line) => {
  const [slug] = await openSales(environment.site, [{ title: `Steady ${line}`, currencyCode: 'CNY', price: '9.00', listPrice: '12.00', products: 2, rules: 'One order each.\n\n'.repeat(20) }]);
  for (const [who, viewport] of [['alice', { width: 1280, height: 800 }], ['bob', { width: 390, height: 844 }]] as const) {
    const page = await open(line, { account: `${who}@demo.example`, password: 'flash-sale-demo' }, `/s/${slug}`, viewport);
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await button(page, 'pay').waitFor();
    await page.waitForTimeout(2 * line + 1_000); // what is on its way has arrived
    const kinds = await seen(page);
    expect(kinds.slice(kinds.lastIndexOf('sending'))).toEqual(expect.arrayContaining(['pay']));
    expect(kinds.slice(kinds.indexOf('sending')).filter((kind) => kind === 'buy' || kind.startsWith('alert'))).toEqual([]);
    expect(await shiftsOf(page), `${viewport.width} px`).toBeLessThanOrEqual(0.02);
  }
});

test.each(LINES)('on a line of %i ms a buyer with an order of one item waits for another, and a refusal stays with its item', { timeout: 1_200_000 }, async (line) => {
  const { site } = environment;
  const bob = { account: 'bob@demo.example', password: 'flash-sale-demo' };
  const [slug] = await openSales(site, [{ title: `Two ${line}`, currencyCode: 'CNY', price: '9.00', listPrice: '12.00', products: 2, stock: [1, 5] }]);
  const rival = await open(0, { account: 'alice@demo.example', password: 'flash-sale-demo' }, `/s/${slug}`);
  const page = await open(line, bob, `/s/${slug}`);
  const choose = (n: number): Promise<void> => page.getByRole('radio').nth(n).check();
  await choose(0);
  await button(rival, 'buy').click();
  await checkByBrowser(rival);
  await button(rival, 'pay').waitFor();

  await button(page, 'waitlist').click();
  await sheet(page).getByText('You are next').waitFor();
  await choose(1);
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
  await choose(0);
  await sheet(page).getByText('You are next').waitFor(); // not lost by the order
  await sheet(page).getByRole('button', { name: 'Leave the waitlist' }).click();
  await button(page, 'waitlist').waitFor(); // something to join

  const other = await page.context().newPage(); // a tab that does not know of the order
  let known = true;
  await other.routeWebSocket('**/graphql', () => {});
  await other.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName !== 'SaleBySlug' || known) return route.fallback();
    const response = await route.fetch();
    const { data } = await response.json();
    data.sale.viewer = { ...data.sale.viewer, action: 'BUY', order: null, orderTask: null, items: data.sale.viewer.items.map((item: object) => ({ ...item, order: null, remainingLimit: 0 })) };
    return route.fulfill({ response, json: { data } });
  });
  known = false;
  await other.goto(`${site.url}/s/${slug}`);
  await other.getByRole('radio').nth(1).check();
  await button(other, 'buy').click();
  await checkByBrowser(other);
  await sheet(other).getByText('You already have an order').waitFor();
  await other.getByRole('radio').nth(0).check();
  await sheet(other).getByText('You already have an order').waitFor({ state: 'detached' });
  await other.getByRole('radio').nth(1).check();
  await sheet(other).getByText('You already have an order').waitFor();
  await cancelOrders(site, bob);
  known = true;
  await other.evaluate(() => dispatchEvent(new Event('online')));
  await button(other, 'buy').waitFor();
  await sheet(other).getByText('You already have an order').waitFor({ state: 'detached' });
});

test.each(LINES)('on a line of %i ms a buyer who let two orders expire reads why and how long to wait, in both languages', { timeout: 1_200_000 }, async (line) => {
  const sale = await environment.sell({ window: '10s' });
  const page = await open(line, sale.buyers[0]!, `/s/${sale.slug}`);
  for (let n = 0; n < 2; n++) {
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await button(page, 'pay').waitFor();
    await button(page, 'buy').waitFor(); // it has expired
  }
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await sheet(page).getByText('Two orders were not paid in time').waitFor();
  expect(await button(page, 'blocked').innerText()).toMatch(/^Try again in (14|15) minutes$/);
  const digits = sheet(page).locator('.numeral', { hasText: ':' });
  const before = await digits.innerText();
  expect(before).toMatch(/^(14|15):\d\d$/);
  await expect.poll(() => digits.innerText()).not.toBe(before); // it ticks
  await page.screenshot({ path: 'screens/blocked-1280.png' });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.screenshot({ path: 'screens/blocked-360.png' });
  await page.locator('header button[lang]').click();
  await sheet(page).getByText('您有两次未按时付款').waitFor();
  expect(await button(page, 'blocked').innerText()).toMatch(/^约 (14|15)\s?分钟后再试$/);
  await page.screenshot({ path: 'screens/blocked-zh-360.png' });
});

test('a sale of the list shows title, picture, price and stock before its own data is there, and stays in place when it comes', async () => {
  await openSales(environment.site, [{ title: 'From the list', currencyCode: 'CNY', price: '9.00', listPrice: '12.00', products: 2 }]);
  for (const [viewport, phase] of [[{ width: 1280, height: 800 }, 'wide'], [{ width: 390, height: 844 }, 'phone']] as const) {
    const page = await it.page({ viewport });
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/graphql', async (route) => {
      if (route.request().postDataJSON().operationName === 'SaleBySlug') await held;
      await route.fallback();
    });
    await signIn(page, environment.site, 'alice');
    await page.getByRole('link', { name: 'From the list' }).click();
    await page.getByRole('heading', { level: 1, name: 'From the list' }).waitFor();
    await page.locator('main strong', { hasText: '¥9' }).first().waitFor();
    await page.locator('[data-stock]').first().waitFor();
    expect(await page.getByRole('radio').count()).toBe(2);
    await page.screenshot({ path: `screens/outline-${phase}.png` });
    answer();
    await button(page, 'buy').waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('H1');
    expect(await shiftsOf(page), phase).toBeLessThanOrEqual(0.02);
  }
});

test('the captcha is requested while the buyer looks: a press costs two requests, and one before it is there waits for it', async () => {
  const [slug] = await openSales(environment.site, [{ title: 'Looked at', currencyCode: 'CNY', price: '9.00', listPrice: '12.00' }]);
  const page = await it.page();
  const operations = recordOperations(page);
  const working = page.waitForEvent('worker');
  await signIn(page, environment.site, 'alice', `/s/${slug}`);
  await (await working).waitForEvent('close'); // the answer is there
  operations.length = 0;
  await buy(page);
  const steps = (names: string[]): string[] => names.filter((name) => ['CreateCaptcha', 'IssuePath', 'PlaceOrder'].includes(name));
  expect(steps(operations)).toEqual(['IssuePath', 'PlaceOrder']);

  const hasty = await it.page();
  let answer = (): void => {};
  const held = new Promise<void>((resolve) => (answer = resolve));
  await hasty.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName === 'CreateCaptcha') await held;
    await route.fallback();
  });
  const asked = recordOperations(hasty);
  await signIn(hasty, environment.site, 'bob', `/s/${slug}`);
  await button(hasty, 'buy').click();
  await button(hasty, 'checking').waitFor();
  answer();
  await button(hasty, 'pay').waitFor();
  expect(steps(asked)).toEqual(['CreateCaptcha', 'IssuePath', 'PlaceOrder']);
});
