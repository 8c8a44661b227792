import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { confirm, confirmProduct } from './admin';
import { checkScreen } from './axe';
import { button, buy, signIn, demoFixture } from './shop';

const it = demoFixture();

/** Drops a picture of a size into the form that is open. */
async function drop(page: Page, width: number, height: number): Promise<void> {
  const transfer = await page.evaluateHandle(
    async ([width, height]) => {
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      canvas.getContext('2d')!.fillRect(0, 0, width / 2, height);
      const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
      const transfer = new DataTransfer();
      transfer.items.add(new File([blob!], 'lamp.png', { type: 'image/png' }));
      return transfer;
    },
    [width, height] as const,
  );
  await page.locator('[data-drop]').dispatchEvent('drop', { dataTransfer: transfer });
}

test('stock is changed while the sale runs, a large change by two people', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate');
  await operator.locator('[data-units]').first().getByText(/^\d+ of \d+ units left/).waitFor();
  await operator.getByRole('link', { name: it.demo.open.title }).click();
  await operator.getByRole('button', { name: /^Change stock/ }).first().click();
  const sheet = operator.getByRole('dialog');
  await sheet.getByLabel('Reason').fill('None of these.');
  await sheet.getByLabel('Units').fill('-1000');
  await sheet.getByRole('button', { name: 'Change stock' }).click();
  await sheet.getByText('Units: Fewer units are free than that').waitFor();
  await sheet.getByLabel('Units').fill('5');
  await sheet.getByLabel('Reason').fill('A box was found.');
  await sheet.getByRole('button', { name: 'Change stock' }).click();
  await sheet.waitFor({ state: 'detached' });
  await operator.getByText('105 / 105').waitFor();

  await operator.getByRole('button', { name: /^Change stock/ }).first().click();
  await sheet.getByLabel('Units').fill('5000');
  await sheet.getByLabel('Reason').fill('A lorry came.');
  await sheet.getByRole('button', { name: 'Change stock' }).click();
  await sheet.waitFor({ state: 'detached' });
  await operator.reload();
  await operator.getByText('Needs a second person').waitFor();
  expect(await operator.getByRole('button', { name: 'Confirm' }).count()).toBe(0); // not by who asked

  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', new URL(operator.url()).pathname);
  await admin.getByRole('button', { name: 'Confirm' }).click();
  await admin.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
  await admin.getByRole('dialog').waitFor({ state: 'detached' }); // a reload would cut the request off
  await admin.reload();
  await admin.getByText('5,105 / 5,105').waitFor();
});

test('the live page shows what happened before it was opened, by item and in the language in use, and offers reasons for a pause', async () => {
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', '/operate');
  await admin.getByRole('link', { name: it.demo.open.title }).click();
  const activity = admin.getByRole('list', { name: 'What happened' });
  await activity.getByText('Stock changed').first().waitFor();
  await activity.getByText('Opened', { exact: true }).waitFor();
  expect(await activity.getByText(/put 5 units on sale|opened it/).count()).toBe(0); // the log says the same in more detail
  const rows = admin.getByRole('region', { name: 'By item' }).getByRole('row');
  await rows.nth(2).waitFor();
  expect(await rows.nth(1).innerText()).toMatch(/0% · 0 \/ [\d,]+\s+0\s+0\s+0$/);
  await admin.evaluate(() => scrollTo(0, 2_000));
  await admin.locator('[data-bar]').getByText('Ends in').waitFor();
  const top = await admin.locator('[data-bar]').evaluate((bar) => bar.getBoundingClientRect().top);
  expect(top).toBeGreaterThanOrEqual(0);
  expect(top).toBeLessThan(60); // it stays on the screen
  await checkScreen(admin, 'admin-live');
  await admin.locator('[data-bar]').getByRole('button', { name: 'Pause' }).click();
  await admin.getByRole('dialog').getByRole('button', { name: 'We are checking the stock.' }).click();
  expect(await admin.getByRole('dialog').getByLabel('Reason').last().inputValue()).toBe('We are checking the stock.');
  await checkScreen(admin, 'admin-pause');
  await admin.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
  await admin.locator('header button[lang]').click();
  await admin.getByRole('list', { name: '动态与记录' }).getByText('调整库存').first().waitFor();
});

test('access controls are changed live, products are created, orders are found and cancelled', async () => {
  const buyer = await it.page();
  await signIn(buyer, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(buyer);

  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/orders');
  await operator.getByRole('searchbox').fill('bob@demo');
  await operator.getByRole('searchbox').press('Enter');
  const row = operator.locator('main tbody', { hasText: 'bob@demo.example' }).first();
  await row.locator('summary').click();
  await row.getByRole('button', { name: /^Cancel order/ }).click();
  await operator.getByRole('dialog').getByLabel('Reason').fill('Wrong price.');
  await operator.getByRole('dialog').getByRole('button', { name: /^Cancel order of ¥/ }).click();
  await row.locator('.chip:visible', { hasText: 'Cancelled' }).waitFor();
  expect(new URL(operator.url()).searchParams.get('q')).toBe('bob@demo'); // filters can be shared
  const saved = operator.waitForEvent('download');
  await operator.getByRole('button', { name: /^Export 1 order/ }).click();
  expect((await saved).suggestedFilename()).toBe('orders.csv');
  const focused = (selector: string): Promise<boolean> => operator.evaluate((it) => document.activeElement!.matches(it), selector);
  await operator.keyboard.press('j');
  expect(await focused('tr[data-row] a')).toBe(true);
  await operator.keyboard.press('/');
  expect(await focused('[type=search]')).toBe(true);
  await button(buyer, 'buy').waitFor(); // the buyer has heard of it

  await buy(buyer);
  await operator.reload();
  await row.locator('summary').click();
  await row.getByRole('button', { name: /^Release unpaid order/ }).click();
  await operator.getByRole('dialog').getByLabel('Reason').fill('The bank closed.');
  await operator.getByRole('dialog').getByRole('button', { name: /^Release order of ¥/ }).click();
  await row.locator('.chip:visible', { hasText: 'Expired' }).waitFor();

  await operator.getByRole('navigation', { name: 'Admin' }).getByRole('link', { name: 'Catalogue' }).click();
  await operator.getByRole('button', { name: 'New product' }).click();
  const sheet = operator.getByRole('dialog');
  await sheet.getByLabel('Name').fill('Night lamp');
  await sheet.getByLabel('List price').fill('59');
  await drop(operator, 200, 100);
  await expect.poll(() => sheet.locator('[data-preview] img').first().evaluate((it: HTMLImageElement) => it.naturalWidth)).toBe(200);
  await sheet.getByLabel('Zoom').fill('2');
  await sheet.getByLabel('Alternative text').fill('A lamp in the shape of a moon');
  await sheet.getByText('29 of 200 characters').waitFor();
  await checkScreen(operator, 'admin-goods-picture');
  await sheet.getByRole('button', { name: 'Create' }).click();
  await operator.getByRole('button', { name: 'Night lamp' }).waitFor();
  const picture = operator.locator('main li', { hasText: 'Night lamp' }).locator('img');
  expect(await picture.evaluate((it: HTMLImageElement) => it.decode().then(() => [it.naturalWidth, it.naturalHeight]))).toEqual([50, 50]); // half of the shorter side

  const shown = buyer.locator('main img').first();
  const name = (await shown.getAttribute('alt'))!; // without a text, the name
  await operator.getByRole('button', { name, exact: true }).click();
  await sheet.getByLabel('Alternative text').fill('Seen from the front, in use');
  await sheet.getByRole('button', { name: 'Save' }).click();
  await sheet.waitFor({ state: 'detached' });
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', '/operate');
  await confirmProduct(admin, operator); // it is on sale
  await expect
    .poll(async () => {
      await buyer.reload();
      await shown.waitFor();
      return shown.getAttribute('alt');
    })
    .toBe('Seen from the front, in use'); // other servers read the catalogue within a second

  await operator.getByRole('navigation', { name: 'Admin' }).getByRole('link', { name: 'Sales' }).click();
  await operator.getByRole('link', { name: it.demo.open.title }).click();
  await operator.locator('summary', { hasText: 'Access controls' }).click();
  await operator.getByLabel('Require a captcha').uncheck();
  await operator.getByRole('button', { name: 'Save', exact: true }).click();
  await operator.getByText('Needs a second person').waitFor();
  await confirm(admin, operator.url());
  await operator.getByText('Access controls changed').first().waitFor();
});

test('a customer finds no admin pages', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', '/operate');
  await page.getByRole('heading', { name: 'This page is for operators.' }).waitFor();
  expect(await page.getByRole('link', { name: 'Admin' }).count()).toBe(0);
});
