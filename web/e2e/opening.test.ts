import { expect, test } from 'vitest';
import { button, checkByBrowser, sent, signIn, stage } from './shop';

const it = stage();

/** Longest time from a press to something that can be seen, in ms. */
const FEEDBACK_MS = 100;

test('with the check done ahead, one press at the opening buys, once, and is felt at once', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', `/s/${it.demo.soon.slug}`);
  const list = await it.page();
  await list.goto(it.demo.url);
  const on = list.getByRole('region', { name: 'On now' }).getByRole('link', { name: it.demo.soon.title });
  await list.getByRole('link', { name: it.demo.soon.title }).waitFor();
  expect(await on.count()).toBe(0);

  const wait = button(page, 'wait');
  await wait.waitFor();
  expect(await wait.getAttribute('aria-disabled')).toBe('true');
  expect(await page.title()).toMatch(/^\d+:\d\d /);
  expect(await page.locator('main').innerText()).toMatch(/Server time \d\d:\d\d:\d\d ± \d+ ms/);

  await page.getByRole('button', { name: 'Do the check now' }).click();
  await checkByBrowser(page);
  await page.getByText('Your check is done').waitFor();

  const names = sent(page);
  await button(page, 'buy').waitFor({ timeout: 30_000 });
  const felt = await page.evaluate(async () => {
    const it = document.querySelector<HTMLElement>('[data-button="buy"]')!;
    const start = performance.now();
    const changed = new Promise<number>((resolve) => {
      new MutationObserver(() => resolve(performance.now() - start)).observe(it, { attributeFilter: ['data-button'] });
    });
    it.click();
    it.click();
    it.click();
    return changed;
  });
  expect(felt).toBeLessThan(FEEDBACK_MS);
  await page.getByText('You got one').waitFor();
  expect(names.filter((name) => name === 'PlaceOrder')).toHaveLength(1);
  expect(names.filter((name) => name === 'IssuePath')).toHaveLength(1);
  await on.waitFor(); // the list has moved the sale by itself
});
