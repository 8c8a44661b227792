/** What operators do in the browser: the steps that their journeys share, and the journey from a draft to the end of a sale. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { button, buy, signIn, type BrowserFixture } from './shop';
import type { SiteEnvironment } from './environment';

/** What a dialog asks for: a text, or one that depends on the moment at which it is filled in. */
export type Fields = Record<string, string | (() => string)>;

/** Takes a step of the sale that is open on the page, and fills in what its sheet asks for. */
export async function act(page: Page, name: string, fields: Fields = {}): Promise<void> {
  await page.getByRole('main').getByRole('button', { name, exact: true }).click();
  const sheet = page.getByRole('dialog');
  for (const [label, value] of Object.entries(fields)) await sheet.getByLabel(label).fill(typeof value === 'function' ? value() : value);
  await sheet.getByRole('button', { name, exact: true }).click();
  await sheet.waitFor({ state: 'detached' });
}

/** Locates the status chip of a sale. */
export const saleStatus = (page: Page, text: string) => page.locator('main .chip', { hasText: text }).first();

/** An instant as a field of date and time shows it in the browser's zone. */
export function fromNow(seconds: number): string {
  const format = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium', timeZone: 'Europe/Berlin' });
  return format.format(Date.now() + seconds * 1000).replace(' ', 'T');
}

/** Writes a draft of one item, from the page for new sales. */
export async function draft(page: Page, title: string): Promise<void> {
  await page.getByLabel('Title').fill(title);
  await chooseProducts(page);
  await page.getByRole('spinbutton', { name: 'Price' }).fill('19.9');
  await page.getByLabel('Stock', { exact: true }).fill('5');
  await page.getByRole('button', { name: 'Save draft' }).click();
  await saleStatus(page, 'Draft').waitFor();
}

/** Chooses the newest product in each item that has none. */
export async function chooseProducts(page: Page): Promise<void> {
  for (const field of await page.getByLabel(/^Product/).all()) if (!(await field.inputValue())) await field.selectOption({ index: 1 });
}

/** Confirms what waits for a second person on the page of a sale. */
export async function confirm(second: Page, sale: string): Promise<void> {
  await second.goto(sale);
  await second.getByRole('button', { name: 'Confirm' }).click();
  await second.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
  await second.getByRole('dialog').waitFor({ state: 'detached' });
}

/** Confirms a change of a product on the page that the message of the one who asked links to. */
export async function confirmProduct(second: Page, asker: Page): Promise<void> {
  const where = asker.getByRole('link', { name: 'Where it is confirmed' });
  await confirm(second, await where.evaluate((link: HTMLAnchorElement) => link.href));
}

/** A figure of the dashboard. */
export async function figure(page: Page, name: string): Promise<string> {
  return page.locator('dl > div', { hasText: name }).locator('dd').innerText();
}

/** How many got as far as a step of the funnel. */
const reached = (page: Page, step: string): Promise<string> => page.locator('#figures ~ div li', { hasText: step }).locator('span > span').nth(1).innerText();

/** The journey of a sale, by two people, with a buyer in between. */
export function operatorJourney(it: BrowserFixture, environment: SiteEnvironment): void {
  test('a sale goes from a draft through review, by two people, to the shop; is watched, paused, resumed and ended', async () => {
    await environment.startWorker();
    const shop = environment.site;
    const operator = await it.page();
    await signIn(operator, shop, 'operator', '/operate/new');
    await draft(operator, 'Evening drop');
    await operator.getByRole('link', { name: 'Edit' }).click();
    await operator.getByLabel('Rules').fill('One each.');
    await operator.getByRole('button', { name: 'Save draft' }).click();
    await operator.getByRole('link', { name: 'Edit' }).waitFor();
    await operator.getByText('Changed', { exact: true }).waitFor(); // the log has what was changed, and into what
    await operator.getByText('One each.').first().waitFor();
    await act(operator, 'Submit for review');
    await saleStatus(operator, 'In review').waitFor();
    expect(await operator.getByRole('button', { name: 'Approve' }).count()).toBe(0);

    const admin = await it.page();
    await signIn(admin, shop, 'admin', '/operate');
    await admin.getByRole('link', { name: 'Evening drop' }).click();
    await act(admin, 'Approve', { 'Note (optional)': 'Fine.' });
    await saleStatus(admin, 'Approved').waitFor();
    await act(admin, 'Schedule', { Ends: fromNow(7_200), Opens: () => fromNow(40) }); // so soon that it is loaded by itself
    await confirm(operator, operator.url());
    await admin.getByRole('heading', { name: 'Live figures' }).waitFor();

    const buyer = await it.page();
    await signIn(buyer, shop, 'alice');
    await buyer.getByRole('link', { name: 'Evening drop' }).click();
    await button(buyer, 'buy').waitFor();
    await buy(buyer);
    await expect.poll(() => figure(admin, 'Available'), { timeout: 120_000 }).toBe('4');
    await expect.poll(() => figure(admin, 'Awaiting payment'), { timeout: 120_000 }).toBe('1');
    await expect.poll(() => reached(admin, 'Orders created'), { timeout: 120_000 }).toBe('1');
    await admin.getByText('Stock reconciled').waitFor();

    await admin.reload();
    await act(admin, 'Pause', { Reason: 'A pause for tea.' });
    const other = await it.page();
    await signIn(other, shop, 'bob', new URL(buyer.url()).pathname);
    await button(other, 'none').waitFor();
    await other.getByText('A pause for tea.').first().waitFor();
    await other.locator('header button[lang]').click();
    await button(other, 'none').getByText('商家已暂停抢购').waitFor();
    await act(admin, 'Resume');
    await button(other, 'buy').waitFor(); // by push, without a reload
    await act(admin, 'End sale', { Reason: 'Enough for today.' });
    await saleStatus(admin, 'Ended').waitFor();
    await button(other, 'none').waitFor();
  });
}
