/**
 * What operators see, every page and every sheet, in both languages and both
 * themes: no accessibility violation by axe, and nothing wider than a phone of
 * 320 px. With SCREENS=1 the pictures go to screens/, for a person to look at.
 */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { checkScreen } from './axe';
import { act, chooseProducts, confirm, confirmProduct, draft, fromNow, saleStatus } from './admin';
import { clickAtBank, button, buy, fillSignIn, recordOperations, signIn, demoFixture, status } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off', SECKILL_PAYMENT_WINDOW: '59m' });
it.lasting = true;

let operator: Page;
let admin: Page;
/** Paths of the draft and of the open sale. */
let written = '';
let open = '';

beforeAll(async () => {
  [operator, admin] = await Promise.all([it.page(), it.page()]);
  await signIn(operator, it.demo, 'operator', '/operate');
  await signIn(admin, it.demo, 'admin', '/operate');
});

/** Opens a dialog with a button, checks it and closes it. */
async function checkSheet(page: Page, name: string | RegExp, file: string): Promise<void> {
  await page.getByRole('main').getByRole('button', { name, exact: true }).first().click();
  await page.getByRole('dialog').waitFor();
  await checkScreen(page, file);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

async function goto(page: Page, path: string, sign: string): Promise<void> {
  await page.goto(it.demo.url + path);
  await page.locator(sign).first().waitFor();
}

test('the list of sales and the editor', async () => {
  await goto(operator, '/operate', 'main li');
  await checkScreen(operator, 'admin-sales');
  await goto(operator, '/operate/new', 'fieldset');
  await checkScreen(operator, 'admin-new');
  await operator.getByRole('button', { name: 'Add an item' }).click();
  await operator.getByLabel('Title').fill('Evening drop');
  await chooseProducts(operator);
  for (const field of await operator.getByRole('spinbutton', { name: 'Price' }).all()) await field.fill('19.9');
  for (const field of await operator.getByLabel('Stock', { exact: true }).all()) await field.fill('5');
  await operator.reload();
  await operator.getByText('Your unsent form was restored.').waitFor();
  expect(await operator.getByLabel('Title').inputValue()).toBe('Evening drop');
  const ends = await operator.getByLabel('Ends').inputValue();
  await operator.getByLabel('Ends').fill(fromNow(-60));
  await operator.getByText('Choose a time in the future').waitFor(); // while it is typed
  await operator.getByLabel('Ends').fill(fromNow(60)); // before it opens
  await operator.getByRole('button', { name: 'Save draft' }).click();
  await operator.getByText('The end must be after the opening').waitFor();
  await checkScreen(operator, 'admin-new-refused');
  await operator.getByLabel('Ends').fill(ends);
  await operator.getByRole('button', { name: 'Remove Item 2' }).click();
  await draft(operator, 'Evening drop');
  written = new URL(operator.url()).pathname;
});

test('a sale on its way through review', async () => {
  await operator.getByRole('link', { name: 'Edit' }).click();
  await operator.getByLabel('Rules').fill('One each.\n\n- No returns on Sundays\n- Collect within a week');
  await operator.getByLabel('Accent colour (').fill('#ff6a00');
  await operator.getByRole('button', { name: 'Save draft' }).click();
  await operator.getByText('Accent colour: its contrast with white is 2.87:1').waitFor();
  await checkScreen(operator, 'admin-edit');
  await operator.getByLabel('Accent colour (').fill('#b3261e');
  await operator.getByRole('button', { name: 'Save draft' }).click();
  await operator.getByRole('link', { name: 'Edit' }).waitFor();
  await checkScreen(operator, 'admin-draft');
  await checkSheet(operator, 'Submit for review', 'admin-submit');
  await act(operator, 'Submit for review');
  await saleStatus(operator, 'In review').waitFor();
  await checkScreen(operator, 'admin-waits');
  await operator.getByText('Preview as buyers will see it').click();
  const preview = operator.locator('[data-preview]');
  const names = recordOperations(operator);
  for (const [tab, text] of [['Before', 'Opens in'], ['Open', 'In stock · 5 of 5 left'], ['Over', 'This sale has ended']] as const) {
    await preview.getByRole('tab', { name: tab }).click();
    await preview.getByText(text, { exact: true }).first().waitFor();
    await checkScreen(operator, `admin-preview-${tab.toLowerCase()}`);
    if (tab !== 'Open') continue;
    await operator.emulateMedia({ colorScheme: 'light' });
    await expect.poll(() => preview.locator('[data-button="buy"]').evaluate((main) => getComputedStyle(main).backgroundColor)).toBe('rgb(179, 38, 30)');
  }
  expect(names.filter((name) => ['CreateCaptcha', 'IssuePath', 'MyAddresses', 'PlaceOrder', 'Requirements', 'SaleBySlug'].includes(name))).toEqual([]);
  await admin.setViewportSize({ width: 768, height: 900 });
  await goto(admin, '/operate/sales', 'main li');
  const heights = await admin.locator('main li:has(a[href^="/operate/sales"])').evaluateAll((rows) => rows.map((row) => row.clientHeight));
  expect(Math.max(...heights) - Math.min(...heights), `heights of the rows: ${heights}`).toBeLessThan(20); // no mark on a line of its own
  await goto(admin, '/operate/nope', 'main h1');
  await checkScreen(admin, 'admin-missing');
  await goto(admin, written, 'main .btn-main');
  await checkScreen(admin, 'admin-review');
  await admin.getByRole('main').getByRole('button', { name: 'Approve', exact: true }).click();
  await admin.getByRole('dialog').getByText('Without a schedule it does not open').waitFor();
  await admin.getByRole('dialog').getByRole('button', { name: 'Approve and schedule' }).waitFor();
  await admin.keyboard.press('Escape');
  await checkSheet(admin, 'Approve', 'admin-approve');
  await checkSheet(admin, 'Reject', 'admin-reject');
  await checkSheet(admin, 'Cancel sale', 'admin-cancel');
  await act(admin, 'Approve', { 'Note (optional)': 'Fine.' });
  await saleStatus(admin, 'Approved').waitFor();
  await checkSheet(admin, 'Schedule', 'admin-schedule');
  await act(admin, 'Schedule', { Opens: fromNow(3_600), Ends: fromNow(7_200) });
  await confirm(operator, it.demo.url + written);
  await saleStatus(admin, 'Scheduled').waitFor();
  await checkSheet(admin, 'Preload', 'admin-load');
  await act(admin, 'Preload');
  await saleStatus(admin, 'Preloaded').waitFor();
  await checkScreen(admin, 'admin-loaded');
});

test('orders: cancelled, refunded', async () => {
  for (const who of ['alice', 'bob']) {
    const buyer = await it.page();
    await signIn(buyer, it.demo, who, `/s/${it.demo.open.slug}`);
    await buy(buyer);
    if (who === 'alice') {
      await button(buyer, 'pay').click();
      await clickAtBank(buyer, 'Approve');
      await buyer.getByRole('button', { name: 'Request refund' }).click();
      await buyer.getByLabel('Reason').fill('Too heavy');
      await buyer.getByRole('dialog').getByRole('button', { name: /^Request refund of ¥/ }).click();
      await status(buyer, 'Refund pending').waitFor();
    }
    await buyer.context().close();
  }
  await operator.getByRole('navigation').getByRole('link', { name: /^Inbox ?1$/ }).click(); // pushed to a page that was open
  await operator.getByRole('link', { name: 'Refund request' }).waitFor();
  await checkScreen(operator, 'admin-inbox');
  await operator.getByRole('link', { name: 'Refund request' }).click();
  await operator.waitForURL('**/operate/refunds');
  await goto(operator, '/operate/orders', 'main tbody');
  await operator.getByRole('button', { name: /^Refund ¥/ }).waitFor();
  await checkScreen(operator, 'admin-orders');
  await operator.locator('main tbody', { has: operator.getByRole('button', { name: /^Cancel order/, includeHidden: true }) }).first().locator('summary').click();
  await checkSheet(operator, /^Cancel order/, 'admin-void');
  await goto(operator, '/operate/refunds', 'main li');
  await checkScreen(operator, 'admin-refunds');
  await checkSheet(operator, 'Reject', 'admin-refund-refused');
  await operator.getByRole('button', { name: /^Refund ¥/ }).click();
  await operator.getByRole('dialog').getByRole('button', { name: /^Refund ¥/ }).click();
  await operator.getByText(/^(Money on its way|Refunded)$/).waitFor();
  await checkScreen(operator, 'admin-refund-approved');
});

test('a sale while it runs', async () => {
  await goto(operator, '/operate', 'main li');
  await operator.getByRole('link', { name: it.demo.open.title }).click();
  await operator.locator('#figures').waitFor();
  open = new URL(operator.url()).pathname;
  await operator.locator('summary', { hasText: 'Access controls' }).click();
  await operator.getByLabel(/^Admitted buyers per second/).fill('500');
  await operator.getByRole('button', { name: 'Save', exact: true }).click();
  await operator.getByText('Access controls changed').first().waitFor();
  await checkScreen(operator, 'admin-live');
  await checkSheet(operator, 'Pause', 'admin-pause');

  await operator.getByRole('button', { name: /^Change stock/ }).first().click();
  await operator.getByRole('dialog').getByLabel('Units').fill('5000');
  await operator.getByRole('dialog').getByLabel('Reason').fill('A lorry came.');
  await checkScreen(operator, 'admin-stock');
  await operator.getByRole('dialog').getByRole('button', { name: 'Change stock' }).click();
  await operator.getByRole('button', { name: 'Withdraw' }).waitFor();
  await checkSheet(operator, 'Withdraw', 'admin-take-back');
});

test('a paused sale, seen by the second member of staff', async () => {
  await goto(admin, open, '#figures');
  await checkSheet(admin, 'End sale', 'admin-end');
  await checkSheet(admin, 'Confirm', 'admin-confirm');
  await checkSheet(admin, 'Decline', 'admin-decline');
  await act(admin, 'Pause', { Reason: 'A pause for tea.' });
  await saleStatus(admin, 'Paused').waitFor();
  await checkScreen(admin, 'admin-paused');
  await checkSheet(admin, 'Resume', 'admin-resume');
  const buyer = await it.page();
  await signIn(buyer, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await button(buyer, 'pay').waitFor();
  await checkScreen(buyer, 'sale-paused');
  await act(admin, 'End sale', { Reason: 'Enough for today.' });
  await saleStatus(admin, 'Ended').waitFor();
  await checkScreen(admin, 'admin-ended');
  await buyer.goto(`${it.demo.url}/`);
  await buyer.locator('main summary').click();
  await buyer.locator('main .chip', { hasText: 'Ended' }).first().waitFor();
  await checkScreen(buyer, 'list-over');
});

test('products, their dialog with its change log, and the empty page of dead letters', async () => {
  await goto(operator, '/operate/goods', 'main li');
  await checkScreen(operator, 'admin-goods');
  await checkSheet(operator, 'New product', 'admin-goods-new');
  const sheet = operator.getByRole('dialog');
  await operator.getByRole('button', { name: 'Glide robot vacuum' }).click();
  await sheet.getByLabel('List price').fill('2699');
  await sheet.getByRole('button', { name: 'Save', exact: true }).click();
  await sheet.waitFor({ state: 'detached' });
  await confirmProduct(admin, operator); // its sale is approved
  await goto(operator, '/operate/goods', 'main li');
  await operator.getByText('¥2,699').waitFor();
  await operator.getByRole('button', { name: 'Glide robot vacuum' }).click();
  await sheet.getByText('Changed', { exact: true }).waitFor();
  await checkScreen(operator, 'admin-goods-edit');
  await goto(operator, '/operate/aside', 'main section');
  await checkScreen(operator, 'admin-aside-none');
  const customer = await it.page();
  await goto(customer, '/operate', 'main h1');
  await customer.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await fillSignIn(customer, 'alice@demo.example');
  await customer.waitForURL('**/operate');
  await customer.getByRole('heading', { name: 'This page is for operators.' }).waitFor();
  await checkScreen(customer, 'admin-denied');
});
