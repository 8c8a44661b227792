/** Orders of accounts that share a browser: who bought, and their review before the payment. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { orderFromOneBrowser } from './api';
import { checkScreen } from './axe';
import { siteEnvironment } from './environment';
import { browserFixture, buy, clickAtBank, signIn, status, type Credentials } from './shop';

const it = browserFixture();
const environment = siteEnvironment();

/** Buyers order one after the other, each on an own page of one browser. Returns the pages with their orders. */
async function orderInTurn(buyers: Credentials[], slug: string): Promise<Page[]> {
  const pages: Page[] = [];
  for (const buyer of buyers) {
    const page = await it.page();
    const device = (await pages[0]?.context().cookies())?.filter(({ name }) => name === 'seckill_device');
    if (device) await page.context().addCookies(device);
    await signIn(page, environment.site, buyer, `/s/${slug}`);
    await buy(page);
    pages.push(page);
  }
  for (const page of pages) {
    await page.goto(`${environment.site.url}/orders`);
    await page.locator('main a[href^="/orders/"]').first().click();
    await page.waitForURL('**/orders/*');
  }
  return pages;
}

const panel = (page: Page) => page.getByRole('region', { name: /Check before payment|付款前核实/ });

/** Takes an action of a row of orders, with a reason. */
async function decide(page: Page, action: RegExp, note: string): Promise<void> {
  await page.getByRole('button', { name: action }).click();
  const sheet = page.getByRole('dialog');
  await sheet.getByLabel('Reason').fill(note);
  await sheet.locator('button.btn-main').click();
  await sheet.waitFor({ state: 'detached' });
}

test('the buyer of an order that a sale holds sees why and until when, explains it, and hears of the decision', async () => {
  await environment.startWorker();
  const { site } = environment;
  const { slug, saleId, buyers } = await site.seed({ users: 2, stock: 2 });
  const operator = await it.page();
  await signIn(operator, site, 'operator', `/operate/sales/${saleId}`);
  await operator.locator('summary', { hasText: 'Access controls' }).click();
  await operator.getByLabel('Accounts in common from which orders are held').fill('2');
  await operator.getByRole('button', { name: 'Save', exact: true }).click();
  await operator.getByText('Access controls changed').first().waitFor();

  const [first, second] = (await orderInTurn(buyers, slug)) as [Page, Page];
  await panel(first).getByText('several accounts ordered from one browser').waitFor(); // pushed
  await panel(first).getByText('Without a decision you can pay from then on').waitFor();
  await status(first, 'Being checked').waitFor();
  expect(await first.getByRole('button', { name: /^Pay/ }).count()).toBe(0);
  await checkScreen(first, 'order-review');
  await panel(first).getByRole('button', { name: 'Send explanation' }).click();
  expect(await panel(first).getByRole('textbox').count()).toBe(1); // there is nothing to send
  await panel(first).getByRole('textbox').fill('  We share a flat.\nAnd a computer.  ');
  await panel(first).getByRole('button', { name: 'Send explanation' }).click();
  await panel(first).getByText('We share a flat.').waitFor();
  expect(await panel(first).getByRole('textbox').count()).toBe(0);
  await checkScreen(first, 'order-review-answered');
  await first.locator('header button[lang]').click();
  await panel(first).getByText('多个账号在同一浏览器下单').waitFor();

  await operator.goto(`${site.url}/operate/orders?sale=${saleId}&held=1`);
  const row = operator.locator('main tbody', { hasText: 'We share a flat.' });
  await row.waitFor();
  await decide(operator, new RegExp(`^Release ${(await row.getByRole('link').first().innerText()).trim()}`), 'A flat, it seems.');
  await panel(first).getByText('商家已核实该订单').waitFor(); // pushed
  await status(first, '待付款').waitFor();
  await first.getByText('A flat, it seems.').waitFor();
  await first.getByRole('button', { name: /^付款|^支付/ }).waitFor();
  await operator.locator('main tbody').first().locator('summary').click();
  await decide(operator, /^Cancel order/, 'A farm.');
  await status(second, 'Cancelled').waitFor(); // pushed
  expect(await panel(second).count()).toBe(0);
});

test('an operator finds the accounts of one browser, holds their orders, reads the explanation and releases', async () => {
  await environment.startWorker();
  const { site } = environment;
  const { slug, saleId, buyers } = await site.seed({ users: 2, stock: 2 });
  const [buyer] = (await orderInTurn(buyers, slug)) as [Page];
  const operator = await it.page();
  await signIn(operator, site, 'operator', `/operate/sales/${saleId}`);
  await operator.getByRole('link', { name: 'Who bought' }).click();
  const cluster = operator.locator('main li', { hasText: 'One browser' });
  await cluster.getByText('Accounts').waitFor();
  await checkScreen(operator, 'admin-bought');
  await cluster.getByRole('button', { name: /^Hold for review/ }).click();
  const sheet = operator.getByRole('dialog');
  await sheet.getByLabel('Reason').fill('Two accounts on one computer.');
  await checkScreen(operator, 'admin-bought-hold');
  await sheet.getByRole('button', { name: 'Hold for review' }).click();
  await operator.getByText('Held: 2. Not held: 0.').waitFor();
  await cluster.getByRole('button').waitFor({ state: 'detached' }); // nothing is left to hold
  await panel(buyer).getByText('several accounts ordered from one browser').waitFor();
  await buyer.getByText('Two accounts on one computer.').waitFor();
  await panel(buyer).getByRole('textbox').fill('My sister and I.');
  await panel(buyer).getByRole('button', { name: 'Send explanation' }).click();

  await cluster.getByRole('link', { name: /^Orders of/ }).click();
  await operator.getByText('Only cluster').waitFor();
  const held = operator.locator('main tbody', { hasText: 'My sister and I.' });
  await held.waitFor();
  await checkScreen(operator, 'admin-bought-orders');
  await held.getByRole('button', { name: /^Release/ }).click();
  await sheet.getByLabel('Reason').fill('Sisters.');
  await sheet.getByRole('button', { name: 'Release' }).click();
  await sheet.waitFor({ state: 'detached' });
  await panel(buyer).getByText('You can pay now').waitFor();
  await buyer.getByRole('button', { name: /^Pay/ }).click();
  await clickAtBank(buyer, 'Approve');
  await status(buyer, 'Paid').waitFor();
  expect(await panel(buyer).count()).toBe(0);
});

test('the list of who bought shows more clusters than one page has', async () => {
  await environment.startWorker();
  const { site } = environment;
  const { saleId, itemId, buyers } = await site.seed({ users: 44, stock: 44, more: ['--paths', '--permit-ratio', '10'] });
  for (let n = 0; n < buyers.length; n += 2) await orderFromOneBrowser(site, itemId, buyers.slice(n, n + 2));
  const operator = await it.page();
  await signIn(operator, site, 'operator', `/operate/sales/${saleId}/bought`);
  const clusters = operator.locator('main li');
  await expect.poll(() => clusters.count(), { timeout: 60_000 }).toBe(20);
  const more = operator.getByRole('button', { name: 'Show more' });
  await more.click();
  await expect.poll(() => clusters.count()).toBe(22);
  expect(await more.count()).toBe(0);
  expect(new Set(await clusters.allInnerTexts()).size).toBe(22); // none twice
});
