/** The playground: its session is the shop's, and subscriptions are a log. */
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { button, buy, signIn, demoFixture } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

/** Opens the playground with one document. */
async function open(page: Page, query: string): Promise<void> {
  await page.goto(`${it.demo.url}/playground`);
  await page.locator('.graphiql-query-editor .CodeMirror').waitFor();
  await write(page, query);
}

/** Replaces the document of the open tab. */
async function write(page: Page, query: string): Promise<void> {
  await page.locator('.graphiql-query-editor .CodeMirror').evaluate((at, text) => {
    (at as unknown as { CodeMirror: { setValue(text: string): void } }).CodeMirror.setValue(text);
  }, query);
}

const execute = (page: Page) => page.locator('.graphiql-execute-button').click();
const answer = (page: Page) => page.locator('.graphiql-response .CodeMirror');

/** The log that the answer shows. */
async function shown(page: Page): Promise<{ events: { at: string; data: { saleStock: { kind: string } } }[] }> {
  const text = await answer(page).evaluate((at) => (at as unknown as { CodeMirror: { getValue(): string } }).CodeMirror.getValue());
  return JSON.parse(text);
}

const session = (page: Page) => page.locator('#session output');

test('a sign-in by the form is used by documents, by the shop, and ends with the session', async () => {
  const page = await it.page();
  await open(page, '{ viewer { account } }');
  await execute(page);
  await answer(page).getByText('null').first().waitFor();
  await page.getByLabel('Account').fill('alice@demo.example');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await session(page).getByText('wrong').waitFor();
  await page.getByLabel('Password').fill('flash-sale-demo');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await session(page).getByText('alice@demo.example').waitFor();
  await execute(page);
  await answer(page).getByText('alice@demo.example').waitFor();
  await page.reload();
  await session(page).getByText('alice@demo.example').waitFor();
  const shop = await page.context().newPage();
  await shop.goto(`${it.demo.url}/orders`);
  await shop.getByRole('heading', { name: 'My orders' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await shop.getByRole('link', { name: 'Sign in' }).first().waitFor();
});

test('a sign-in in the shop is used by the playground', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob');
  await open(page, '{ viewer { account } }');
  await execute(page);
  await answer(page).getByText('bob@demo.example').waitFor();
});

test('a sign-in by a document is used by the documents after it', async () => {
  const page = await it.page();
  await open(page, 'mutation { login(input: { account: "bob@demo.example", password: "flash-sale-demo" }) { tokens { accessToken } userErrors { code } } }');
  await execute(page);
  await session(page).getByText('Signed in by a document').waitFor();
  await write(page, '{ viewer { account } }');
  await execute(page);
  await answer(page).getByText('bob@demo.example').waitFor();
});

test('examples are a collection: one that was not changed gives place to the next, also on a phone', async () => {
  const page = await it.page();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(`${it.demo.url}/playground`);
  await page.locator('.graphiql-query-editor .CodeMirror').waitFor();
  const text = () => page.locator('.graphiql-query-editor .CodeMirror').evaluate((at) => (at as unknown as { CodeMirror: { getValue(): string } }).CodeMirror.getValue());
  expect(await text()).toContain('mutation SignIn');
  const examples = page.getByLabel('Examples');
  expect(await examples.locator('option').allTextContents()).toContain('Follow the order task');
  await examples.selectOption({ label: 'Look at the sale' });
  await expect.poll(text).toContain('query Look');
  await execute(page);
  await answer(page).getByText('"phase"').first().waitFor();
  expect(await page.getByRole('tab').count()).toBe(1);
  const titles = (await examples.locator('option').allTextContents()).filter((title) => title !== 'Examples');
  expect(titles.length).toBeGreaterThan(3);
  for (const label of titles) {
    // One that was changed stays, and the next opens at once in a tab that is visible.
    await write(page, `${await text()}\n# changed`);
    await examples.selectOption({ label });
    await expect.poll(text, { interval: 20 }).not.toContain('# changed');
    expect(await text()).not.toContain('Welcome to GraphiQL');
    await expect.poll(text, { interval: 20 }).not.toBe('');
    const active = (await page.locator('.graphiql-tab-active').boundingBox())!;
    const strip = (await page.locator('.graphiql-tabs').boundingBox())!;
    expect(active.x + active.width).toBeGreaterThan(strip.x);
    expect(active.x).toBeLessThan(360);
  }
  expect(await page.getByRole('tab').count()).toBe(1 + titles.length);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
});

test('a captcha in an answer is shown as a picture', async () => {
  const page = await it.page();
  await open(page, 'mutation { createCaptcha(input: { purpose: REGISTER, kind: TEXT }) { challenge { kind image } userErrors { code message } } }');
  await execute(page);
  const picture = page.getByRole('img', { name: 'Picture 1 of the answer' });
  await picture.waitFor();
  expect(await picture.evaluate((img) => (img as unknown as { naturalWidth: number }).naturalWidth)).toBeGreaterThan(50);
  await write(page, '{ viewer { account } }');
  await execute(page);
  await picture.waitFor({ state: 'detached' });
});

test('one press buys a unit, and a second one says that there is an order', async () => {
  const page = await it.page({ viewport: { width: 360, height: 740 } });
  await page.goto(`${it.demo.url}/playground`);
  const press = page.getByRole('button', { name: 'Buy one unit' });
  await press.click();
  await session(page).getByText(/^Bought: order \S+, [\d.]+ CNY$/).waitFor();
  await answer(page).getByText('"PENDING_PAYMENT"').first().waitFor();
  expect(await page.getByRole('tab').count()).toBe(1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await press.click();
  await session(page).getByText('You already have an order').waitFor();
});

test('the events of a subscription are a log', async () => {
  const shop = await it.page();
  await signIn(shop, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  const page = await shop.context().newPage();
  const { data } = await (await fetch(`${it.demo.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'query ($slug: String!) { sale(by: { slug: $slug }) { id } }', variables: { slug: it.demo.open.slug } }),
  })).json() as { data: { sale: { id: string } } };
  await open(page, `subscription { saleStock(saleId: "${data.sale.id}") { kind items { stock { remaining } } } }`);
  await execute(page);
  await answer(page).getByText('SNAPSHOT').waitFor();
  await buy(shop);
  await button(shop, 'pay').waitFor();
  await page.bringToFront();
  await expect.poll(async () => (await shown(page)).events.map(({ data }) => data.saleStock.kind)).toEqual(['UPDATE', 'SNAPSHOT']);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.locator('.graphiql-response .CodeMirror').scrollIntoViewIfNeeded();
  expect((await page.locator('.graphiql-response').boundingBox())!.width).toBeGreaterThan(250);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
