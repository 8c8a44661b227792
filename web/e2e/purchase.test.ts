/** A whole purchase, from the list to a paid order: accessible at each step, without layout shifts, with few presses, in one tab. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { violations } from './axe';
import { button, checkByBrowser, clickAtBank, demoFixture, preferPictures, signIn, status } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

/** Most layout shift of a whole purchase. */
const MOST_SHIFT = 0.02;
const MOST_PRESSES = 4;

/** Counts the presses of a page, and keeps the layout shifts of the documents that it leaves. */
async function counted(page: Page): Promise<{ presses(): Promise<number>; expectNoShifts(): Promise<void> }> {
  await page.addInitScript(() => {
    addEventListener('click', ({ isTrusted }) => isTrusted && sessionStorage.setItem('presses', String(Number(sessionStorage.getItem('presses')) + 1)), true);
    addEventListener('pagehide', () => {
      const kept: string[] = JSON.parse(sessionStorage.getItem('shifts') ?? '[]');
      sessionStorage.setItem('shifts', JSON.stringify([...kept, ...(window as unknown as { shifts: string[] }).shifts]));
    });
  });
  return {
    presses: () => page.evaluate(() => Number(sessionStorage.getItem('presses'))),
    expectNoShifts: async () => {
      const shifts = await page.evaluate((): string[] => [...JSON.parse(sessionStorage.getItem('shifts') ?? '[]'), ...(window as unknown as { shifts: string[] }).shifts]);
      expect(shifts.reduce((sum, shift) => sum + parseFloat(shift), 0), shifts.join('\n')).toBeLessThanOrEqual(MOST_SHIFT);
    },
  };
}

const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const wide: BrowserContextOptions = { viewport: { width: 1280, height: 900 } };

test.each([['en-GB', 'light', 'alice'], ['zh-CN', 'dark', 'bob']] as const)('on a phone a buyer pays with four presses in one tab, without a shift or a violation (%s, %s)', async (locale, colorScheme, who) => {
  const page = await it.page({ ...phone, locale, colorScheme });
  const seen: string[] = [];
  const check = async (step: string): Promise<void> => void seen.push(...(await violations(page)).map((each) => `${step}: ${each}`));
  await signIn(page, it.demo, who);
  const count = await counted(page);
  await page.reload();
  await page.getByRole('link', { name: it.demo.open.title }).waitFor();
  await check('list');
  await page.getByRole('link', { name: it.demo.open.title }).tap();
  await button(page, 'buy').waitFor();
  await check('sale');
  await button(page, 'buy').tap();
  await button(page, 'pay').waitFor();
  await check('order');
  await button(page, 'pay').tap();
  const approve = page.locator('form button').first();
  await page.waitForURL(/\/sandbox/);
  await approve.waitFor();
  await check('bank');
  await approve.tap();
  await page.getByRole('status').waitFor();
  expect(await count.presses()).toBeLessThanOrEqual(MOST_PRESSES);
  expect(page.context().pages()).toHaveLength(1);
  await page.locator('a', { hasText: /Back to the order|返回/ }).tap();
  await status(page, locale === 'zh-CN' ? '已付款' : 'Paid').waitFor();
  await check('paid');
  expect(seen).toEqual([]);
  await count.expectNoShifts();
});

test('on a wide screen the captcha with a picture, the code to scan and the paid order shift nothing and have no violation', async () => {
  const page = await it.page(wide);
  const seen: string[] = [];
  const check = async (step: string): Promise<void> => void seen.push(...(await violations(page)).map((each) => `${step}: ${each}`));
  await preferPictures(page);
  await signIn(page, it.demo, 'operator');
  const count = await counted(page);
  await page.reload();
  await page.getByRole('link', { name: it.demo.open.title }).click();
  await button(page, 'buy').click();
  await page.getByRole('dialog').getByLabel('Your answer').waitFor();
  await check('captcha');
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
  await check('order');
  await button(page, 'pay').click();
  await page.getByRole('img', { name: 'Scan to pay' }).waitFor();
  await check('pay');
  await clickAtBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  await check('paid');
  expect(seen).toEqual([]);
  await count.expectNoShifts();
});
