import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { saleStatus } from './admin';
import { button, buy, preferPictures, signIn, demoFixture, status } from './shop';

const it = demoFixture();

/** More stops than any page has. */
const MOST_STOPS = 60;

/** Goes to an element by Tab alone. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let stop = 0; stop < MOST_STOPS; stop++) {
    await page.keyboard.press('Tab');
    if (await target.evaluate((element) => element === document.activeElement)) return;
  }
  throw new Error(`no way to ${target} by Tab`);
}

const focused = (page: Page): Promise<string> => page.evaluate(() => document.activeElement?.textContent ?? '');

test('everything from signing in to the order goes by keyboard', async () => {
  const page = await it.page();
  await preferPictures(page);
  await page.goto(`${it.demo.url}/`);
  await page.getByRole('link', { name: it.demo.open.title }).waitFor();
  await page.keyboard.press('Tab');
  expect(await focused(page)).toBe('Skip to content');
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByRole('link', { name: it.demo.open.title }));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: it.demo.open.title }).waitFor();
  await expect.poll(() => focused(page)).toBe(it.demo.open.title); // the focus goes along

  await tabTo(page, button(page, 'sign-in'));
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByLabel('E-mail or phone'));
  await page.keyboard.type('alice@demo.example');
  await tabTo(page, page.getByLabel('Password', { exact: true }));
  await page.keyboard.type('flash-sale-demo');
  await page.keyboard.press('Enter');
  await button(page, 'buy').waitFor();

  await tabTo(page, page.getByRole('radio').first());
  await page.keyboard.press('ArrowDown');
  expect(await page.getByRole('radio').nth(1).isChecked()).toBe(true);
  await tabTo(page, button(page, 'buy'));
  await page.keyboard.press('Enter');
  const sheet = page.getByRole('dialog');
  await sheet.locator('canvas').waitFor();
  await expect.poll(() => sheet.getByLabel('Your answer').evaluate((input) => input === document.activeElement)).toBe(true);
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'detached' });
  await expect.poll(() => button(page, 'buy').evaluate((it) => it === document.activeElement)).toBe(true); // and comes back

  await page.keyboard.press('Enter');
  await sheet.locator('canvas').waitFor();
  await tabTo(page, sheet.getByRole('button', { name: /Verify automatically/ }));
  await page.keyboard.press('Enter');
  await button(page, 'pay').waitFor();
  await tabTo(page, button(page, 'pay'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
});

test('after an act whose button is gone the focus is on what comes next, or on the heading', async () => {
  const buyer = await it.page();
  await signIn(buyer, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(buyer);
  await button(buyer, 'pay').press('Enter');
  await buyer.getByRole('link', { name: 'Open the payment page' }).waitFor();
  await buyer.reload();
  await buyer.getByRole('button', { name: /^Pay ¥/ }).press('Enter');
  await expect.poll(() => focused(buyer)).toBe('Open the payment page');
  await buyer.getByRole('button', { name: 'Cancel order', exact: true }).press('Enter');
  await buyer.getByRole('button', { name: 'Yes, cancel' }).press('Enter');
  await status(buyer, 'Cancelled').waitFor();
  await expect.poll(() => focused(buyer)).toMatch(/^Order /);

  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', '/operate');
  await admin.getByRole('link', { name: it.demo.open.title }).press('Enter');
  for (const [name, then] of [['Pause', 'Paused'], ['Resume', 'Live']] as const) {
    await admin.getByRole('button', { name, exact: true }).press('Enter');
    const sheet = admin.getByRole('dialog');
    if (name === 'Pause') await sheet.getByLabel('Reason').fill('Tea.');
    await sheet.getByRole('button', { name, exact: true }).press('Enter');
    await saleStatus(admin, then).waitFor();
    await expect.poll(() => focused(admin)).toBe(it.demo.open.title);
  }
});

test('countdowns are hidden from screen readers, the purchase button is not', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await button(page, 'buy').waitFor();
  const ticking = await page.locator('main').evaluate((main) => {
    const read = (node: Element): string =>
      node.getAttribute('aria-hidden') === 'true' ? '' : [...node.childNodes].map((child) => (child instanceof Element ? read(child) : child.textContent)).join(' ');
    return read(main);
  });
  expect(ticking).toContain('Buy ');
  expect(ticking).not.toContain('Ends in');
  expect(await page.locator('main time[datetime]').count()).toBeGreaterThan(1);
  expect(await page.locator('[aria-live=polite]').count()).toBeGreaterThan(0);
});

test('with prefers-reduced-motion nothing is animated', async () => {
  const page = await it.page({ reducedMotion: 'reduce' });
  await page.goto(`${it.demo.url}/sign-in`);
  const moving = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('span'));
    probe.className = 'spin';
    return getComputedStyle(probe).animationDuration;
  });
  expect(moving.split(', ').every((duration) => parseFloat(duration) < 0.001)).toBe(true);
});

test('on a phone the status sheet hides nothing that has the focus (WCAG 2.4.11)', async () => {
  const page = await it.page({ viewport: { width: 390, height: 664 } });
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await button(page, 'buy').waitFor();
  const hidden = (): Promise<string | null> =>
    page.evaluate(() => {
      const at = document.activeElement;
      const sheet = document.querySelector('.sheet')!;
      if (!at || at === document.body || sheet.contains(at)) return null;
      const box = (at.closest('label') ?? at).getBoundingClientRect();
      return box.bottom > sheet.getBoundingClientRect().top + 1 && box.top > 0 ? `${at.outerHTML.slice(0, 80)} ends at ${box.bottom}` : null;
    });
  const ways = ['Tab', 'Shift+Tab'];
  for (const way of ways) {
    const seen: string[] = [];
    for (let stop = 0; stop < MOST_STOPS; stop++) {
      await page.keyboard.press(way);
      const what = await hidden();
      if (what) seen.push(what);
    }
    expect(seen, way).toEqual([]);
  }
});
