import { expect, test } from 'vitest';
import { expectStatusVisible, checkScreen } from './axe';
import { button, checkByBrowser, browserFixture, recordOrderKeys, recordOperations, signIn } from './shop';
import { siteEnvironment } from './environment';

const it = browserFixture();
const environment = siteEnvironment();

/** Maximum number of frames between a click and a visible change; a frame takes 16 ms on an idle machine. */
const FEEDBACK_FRAMES = 3;

test('joining the draw before the opening gives a turn, and one press then buys once, with feedback at once', async () => {
  const { site } = environment;
  await site.startWorker();
  const [page, list] = [await it.page(), await it.page()];
  await signIn(page, site, 'alice');
  const { slug } = await site.seed({ users: 0, stock: 5, more: ['--opens-in', '100s'] });
  await Promise.all([page.goto(`${site.url}/s/${slug}`), list.goto(site.url)]);
  const on = list.getByRole('region', { name: 'On now' }).getByRole('link', { name: 'Load sale' });
  await list.getByRole('link', { name: 'Load sale' }).waitFor();
  expect(await on.count()).toBe(0);

  const join = button(page, 'join');
  await join.waitFor();
  expect(await page.title()).toMatch(/^\d+:\d\d /);

  await join.click();
  await checkByBrowser(page);
  await page.getByText('You are in the draw').waitFor();
  await page.reload();
  await page.getByText('You are in the draw').waitFor(); // the place is kept

  const names = recordOperations(page);
  const keys = recordOrderKeys(page);
  await page.getByText('Your turn', { exact: true }).waitFor({ timeout: 300_000 });
  await expectStatusVisible(page, 'a turn');
  const felt = await page.evaluate(async () => {
    const it = document.querySelector<HTMLElement>('[data-button="buy"]')!;
    let frames = 0;
    const count = (): void => void requestAnimationFrame(() => (frames++, count()));
    const changed = new Promise<number>((resolve) => {
      new MutationObserver(() => resolve(frames)).observe(it, { attributeFilter: ['data-button'] });
    });
    count();
    it.click();
    it.click();
    it.click();
    return changed;
  });
  expect(felt).toBeLessThanOrEqual(FEEDBACK_FRAMES);
  await page.getByText('You got it!').waitFor();
  expect(keys.size).toBe(1);
  expect(names).not.toContain('IssuePath');
  await on.waitFor(); // the list has moved the sale by itself

  const check = page.locator('[data-draw]');
  await check.locator('summary').first().click();
  const again = check.getByRole('button', { name: 'Check again' });
  await again.or(check.locator('[data-step]')).first().waitFor();
  await expect
    .poll(async () => {
      await again.evaluateAll((found) => found.forEach((each) => (each as HTMLElement).click())); // none once the seed is public
      return check.locator('[data-right="true"]').count();
    }, { timeout: 300_000, interval: 2_000 })
    .toBe(3);
  expect(await check.getByRole('status').textContent()).toContain('The draw was fair to you');
  await checkScreen(page, 'draw-checked');

  await page.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName !== 'TicketDraw') return route.continue();
    const response = await route.fetch();
    const { data } = await response.json();
    data.node.draw.number = '4503599627370496'; // a shop that lies
    return route.fulfill({ response, json: { data } });
  });
  await page.reload();
  await check.locator('summary').first().click();
  await check.getByRole('alert').waitFor();
  await checkScreen(page, 'draw-wrong');
  expect(await check.locator('[data-right="false"]').getAttribute('data-step')).toBe('number');
  await page.unrouteAll({ behavior: 'ignoreErrors' }); // the page may be reading the draw again
});
