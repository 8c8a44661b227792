/** A drop on a phone of 360 px, from before the opening to the receipt, as its buyer sees it. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { scheduleSales } from './api';
import { checkScreen, shiftsOf } from './axe';
import { button, buy, demoFixture, signIn } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });
const phone = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true } as const;

const sheet = (page: Page) => page.locator('section.sheet');

/** The top of an element in the window, in px. */
const topOf = (page: Page, selector: string): Promise<number> => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().top);

test('before the opening the price is on the first screen, before the rules, and large digits count down over the picture', async () => {
  const [slug] = await scheduleSales(it.demo, [{ title: 'One thing', currencyCode: 'CNY', price: '699.00', listPrice: '999.00', rules: 'One order each.' }], 1_800_000);
  for (const viewport of [phone.viewport, { width: 1280, height: 900 }]) {
    const page = await it.page({ ...phone, viewport });
    await page.goto(`${it.demo.url}/s/${slug}`);
    await sheet(page).waitFor();
    const price = page.locator('main strong.numeral').first();
    expect(await price.innerText()).toBe('¥699');
    const box = (await price.boundingBox())!;
    expect(box.y + box.height).toBeLessThan(await topOf(page, 'section.sheet')); // not under the sheet
    expect(box.y).toBeLessThan(await topOf(page, 'h2:has-text("Rules")'));
    expect(await topOf(page, '[data-stock]')).toBeLessThan(await topOf(page, 'h2:has-text("Rules")'));
    const digits = page.locator('[data-opening] .numeral');
    expect(await digits.innerText()).toMatch(/^\d\d:\d\d$|^\d\d:\d\d:\d\d$/);
    expect(await digits.evaluate((it) => parseFloat(getComputedStyle(it).fontSize))).toBeGreaterThanOrEqual(64);
    expect(await digits.evaluate((it) => getComputedStyle(it).fontVariantNumeric)).toBe('tabular-nums');
    const width = (await digits.boundingBox())!.width;
    const before = await digits.innerText();
    await expect.poll(() => digits.innerText()).not.toBe(before);
    expect((await digits.boundingBox())!.width).toBeCloseTo(width, 1);
  }
});

test('the opening is one scene, to a button in its place, and the layout stays', async () => {
  const opensIn = 16_000;
  const [slug] = await scheduleSales(it.demo, [{ title: 'Drop', currencyCode: 'CNY', price: '699.00', listPrice: '999.00' }], opensIn);
  const page = await it.page(phone);
  await signIn(page, it.demo, 'alice', `/s/${slug}`);
  const opening = page.locator('[data-opening=counts]');
  await opening.locator('svg').waitFor(); // the ring of the last ten seconds
  expect(await opening.evaluate((it) => it.getAnimations({ subtree: true }).length)).toBe(0); // prefers-reduced-motion
  await page.screenshot({ path: 'screens/drop-last.png' });
  await button(page, 'buy').waitFor();
  await page.locator('[data-opening]').waitFor({ state: 'detached' });
  expect(await shiftsOf(page)).toBeLessThanOrEqual(0.02);

  const item = sheet(page).locator('> div').first();
  expect(await item.innerText()).toMatch(/¥699$/);
  expect((await item.locator('img, svg').first().boundingBox())!.width).toBe(40);
  expect(await button(page, 'buy').innerText()).toBe('Buy · ¥699'.replace(' ¥', '\u00a0¥'));
  expect((await button(page, 'buy').boundingBox())!.height).toBeLessThan(60); // one line
  for (const words of ['On sale now', 'In stock']) expect(await sheet(page).getByText(words).evaluateAll((found) => found.filter((it) => it.clientHeight > 1).length)).toBe(0);
  await checkScreen(page, 'drop-open');

  await page.setViewportSize(phone.viewport);
  await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts.splice(0)); // of other sizes
  await button(page, 'buy').tap();
  await sheet(page).getByText('You got it!').waitFor();
  expect(await sheet(page).locator('.tick').count()).toBe(1);
  expect(await sheet(page).innerText()).toMatch(/Pay by \d\d:\d\d, or it goes to the next buyer\./);
  expect(await button(page, 'pay').innerText()).toMatch(/^Pay ¥699\s+\d+:\d\d left$/);
  expect(await shiftsOf(page)).toBeLessThanOrEqual(0.02);
  await checkScreen(page, 'drop-won');

  await page.setViewportSize(phone.viewport);
  await button(page, 'pay').tap();
  await page.waitForURL('**/sandbox/pay/**'); // the page of the bank in the same tab, not a code
  await page.getByRole('button', { name: 'Approve', exact: true }).tap();
  await page.getByRole('link', { name: 'Back to the order' }).tap();
  const view = page.getByRole('button', { name: 'View receipt' });
  await view.waitFor();
  const refund = page.getByRole('button', { name: 'Request refund' });
  expect((await refund.boundingBox())!.y).toBeGreaterThan((await page.locator('main dl').first().boundingBox())!.y);
  expect(await refund.evaluate((it) => it.matches('.btn'))).toBe(false);
  await page.getByText('Next, the shop packs it.').or(page.getByText('Nothing more to do.')).waitFor();
  await checkScreen(page, 'drop-paid');
  expect(await page.locator('[data-receipt]').isVisible()).toBe(false);
  await view.tap();
  expect(await page.locator('[data-receipt]').isVisible()).toBe(true);
});

test('a phone that comes back from the page of the bank unpaid has a button to it, and the code for another device', async () => {
  const page = await it.page(phone);
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').tap();
  await page.waitForURL('**/sandbox/pay/**');
  const time = page.locator('time');
  const hour = await time.evaluate((it) => new Date(it.getAttribute('datetime')!).toTimeString().slice(0, 8));
  expect(await time.innerText()).toMatch(new RegExp(`^\\w+ \\d+, ${hour}$`)); // of the reader's clock, not UTC
  await page.getByRole('link', { name: 'Back to the order' }).tap();
  await page.route('**/sandbox/**', (route) => route.fulfill({ status: 204 })); // the page of the bank does not open
  await page.getByRole('button', { name: /^Pay ¥/ }).tap();
  await page.getByRole('link', { name: 'Open the payment page' }).waitFor();
  expect(await page.getByRole('img', { name: 'Scan to pay' }).count()).toBe(0);
  await page.getByText('Pay on another device').tap();
  await page.getByRole('img', { name: 'Scan to pay' }).waitFor();
  await checkScreen(page, 'drop-pay');
});
