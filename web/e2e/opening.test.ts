import { expect, test } from 'vitest';
import { button, checkByBrowser, sent, signIn, stage } from './shop';

const it = stage();

/** Longest time from a press to something that can be seen, in ms. */
const FEEDBACK_MS = 100;

test('who joins the draw before the opening gets a turn, and one press then buys, once, and is felt at once', async () => {
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

  await page.getByRole('button', { name: 'Join the draw now' }).click();
  await checkByBrowser(page);
  await page.getByText('You are in the draw').waitFor();
  await page.reload();
  await page.getByText('You are in the draw').waitFor(); // the place is kept

  const names = sent(page);
  await page.getByText('It is your turn', { exact: true }).waitFor();
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
  expect(names).not.toContain('IssuePath');
  await on.waitFor(); // the list has moved the sale by itself
});
