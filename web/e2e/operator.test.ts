import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { button, buy, signIn, stage } from './shop';

const it = stage();

/** Takes a step of the sale that is open on the page, and fills in what its sheet asks for. */
async function act(page: Page, name: string, fields: Record<string, string> = {}): Promise<void> {
  await page.getByRole('main').getByRole('button', { name, exact: true }).click();
  const sheet = page.getByRole('dialog');
  for (const [label, value] of Object.entries(fields)) await sheet.getByLabel(label).fill(value);
  await sheet.getByRole('button', { name, exact: true }).click();
  await sheet.waitFor({ state: 'detached' });
}

const status = (page: Page, text: string) => page.locator('main .chip', { hasText: text }).first();

/** An instant as a field of date and time shows it in the browser's zone. */
function fromNow(seconds: number): string {
  const format = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium', timeZone: 'Europe/Berlin' });
  return format.format(Date.now() + seconds * 1000).replace(' ', 'T');
}

/** A figure of the cockpit. */
async function figure(page: Page, name: string): Promise<string> {
  return page.locator('dl > div', { hasText: name }).locator('dd').innerText();
}

test('a sale goes from a draft through review, by two people, to the shop; is watched, held, resumed and ended', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/new');
  await operator.getByLabel('Title').fill('Evening drop');
  await operator.getByLabel('Price').fill('19.9');
  await operator.getByLabel('Stock', { exact: true }).fill('5');
  await operator.getByRole('button', { name: 'Save as a draft' }).click();
  await status(operator, 'Draft').waitFor();

  await operator.getByRole('link', { name: 'Edit' }).click();
  await operator.getByLabel('Rules').fill('One each.');
  await operator.getByRole('button', { name: 'Save as a draft' }).click();
  await status(operator, 'Draft').waitFor();
  await act(operator, 'Hand in for approval');
  await status(operator, 'Waits for approval').waitFor();
  expect(await operator.getByRole('button', { name: 'Approve' }).count()).toBe(0);

  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', '/operate');
  await admin.getByRole('link', { name: 'Evening drop' }).click();
  await act(admin, 'Approve', { 'Remark (optional)': 'Fine.' });
  await status(admin, 'Approved').waitFor();
  await act(admin, 'Schedule', { Opens: fromNow(12), Ends: fromNow(7_200) });
  await status(admin, 'Scheduled').waitFor();
  await act(admin, 'Load now');
  await admin.getByRole('heading', { name: 'Live figures' }).waitFor();

  const buyer = await it.page();
  await signIn(buyer, it.demo, 'alice');
  await buyer.getByRole('link', { name: 'Evening drop' }).click();
  await button(buyer, 'buy').waitFor();
  await buy(buyer);
  await expect.poll(() => figure(admin, 'Left to take'), { timeout: 20_000 }).toBe('4');
  expect(await figure(admin, 'Wait for payment')).toBe('1');
  await admin.getByText('The sum holds').waitFor();

  await admin.reload();
  await act(admin, 'Pause', { Reason: 'A pause for tea.' });
  const other = await it.page();
  await signIn(other, it.demo, 'bob', new URL(buyer.url()).pathname);
  await button(other, 'none').waitFor();
  await other.getByText('A pause for tea.').first().waitFor();
  await act(admin, 'Go on');
  await button(other, 'buy').waitFor(); // by push, without a reload
  await act(admin, 'End the sale', { Reason: 'Enough for today.' });
  await status(admin, 'Over').waitFor();
  await button(other, 'none').waitFor();
});

test('stock is changed while the sale runs, a large change by two people', async () => {
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate');
  await operator.getByRole('link', { name: it.demo.open.title }).click();
  await operator.getByRole('button', { name: /^Change the stock/ }).first().click();
  const sheet = operator.getByRole('dialog');
  await sheet.getByLabel('Units').fill('5');
  await sheet.getByLabel('Reason').fill('A box was found.');
  await sheet.getByRole('button', { name: 'Change the stock' }).click();
  await sheet.waitFor({ state: 'detached' });
  await operator.getByText('105 / 105').waitFor();

  await operator.getByRole('button', { name: /^Change the stock/ }).first().click();
  await sheet.getByLabel('Units').fill('5000');
  await sheet.getByLabel('Reason').fill('A lorry came.');
  await sheet.getByRole('button', { name: 'Change the stock' }).click();
  await sheet.waitFor({ state: 'detached' });
  await operator.reload();
  await operator.getByText('Waits for a second person').waitFor();
  expect(await operator.getByRole('button', { name: 'Confirm' }).count()).toBe(0); // not by who asked

  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', new URL(operator.url()).pathname);
  await admin.getByRole('button', { name: 'Confirm' }).click();
  await admin.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
  await admin.reload();
  await admin.getByText('5,105 / 5,105').waitFor();
});

test('rules at the gate are changed live, goods are made, orders are found, called off and paid back', async () => {
  const buyer = await it.page();
  await signIn(buyer, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(buyer);

  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', '/operate/orders');
  await operator.getByRole('searchbox').fill('bob@demo');
  await operator.getByRole('searchbox').press('Enter');
  await operator.locator('main li', { hasText: 'bob@demo.example' }).getByRole('button', { name: /^Call off/ }).click();
  await operator.getByRole('dialog').getByLabel('Reason').fill('Wrong price.');
  await operator.getByRole('dialog').getByRole('button', { name: 'Call off' }).click();
  await operator.locator('main .chip', { hasText: 'Cancelled' }).first().waitFor();
  await button(buyer, 'buy').waitFor(); // the buyer has heard of it

  await operator.getByRole('navigation', { name: 'Operate' }).getByRole('link', { name: 'Goods' }).click();
  await operator.getByRole('button', { name: 'New goods' }).click();
  const sheet = operator.getByRole('dialog');
  await sheet.getByLabel('Name').fill('Night lamp');
  await sheet.getByLabel('Usual price').fill('59');
  await sheet.getByRole('button', { name: 'Create' }).click();
  await operator.getByRole('button', { name: 'Night lamp' }).waitFor();

  await operator.getByRole('navigation', { name: 'Operate' }).getByRole('link', { name: 'Sales' }).click();
  await operator.getByRole('link', { name: it.demo.open.title }).click();
  await operator.getByText('Rules at the gate').click();
  await operator.getByLabel('A captcha is needed').uncheck();
  await operator.getByRole('button', { name: 'Save' }).click();
  await operator.getByText('Rules changed').first().waitFor();
});

test('a customer finds no desk', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', '/operate');
  await page.getByRole('heading', { name: 'This part is for operators.' }).waitFor();
  expect(await page.getByRole('link', { name: 'Operate' }).count()).toBe(0);
});
