/** The page of webhooks: an endpoint is created, its secret shown once and replaced, its deliveries read. */
import { expect, test } from 'vitest';
import { checkScreen } from './axe';
import { signIn, demoFixture } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off', SECKILL_WEBHOOK_NETWORKS: '127.0.0.0/8' });

test('an administrator sets up an endpoint and replaces its secret', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'admin', '/operate/webhooks');
  await page.getByText('No other system receives events yet.').waitFor();
  await page.getByRole('button', { name: 'New endpoint' }).click();
  const sheet = page.getByRole('dialog');
  await checkScreen(page, 'new webhook endpoint');
  await sheet.getByLabel('Address', { exact: true }).fill('http://127.0.0.1:9/events');
  await sheet.getByLabel('Order placed').uncheck();
  await sheet.getByLabel('Sale changed state').uncheck(); // the second sale of the demo opens while this test runs
  await sheet.getByRole('button', { name: 'Save', exact: true }).click();
  const first = await sheet.locator('code').innerText();
  expect(first).toMatch(/^whsec_/);
  await checkScreen(page, 'secret of a webhook endpoint');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await sheet.getByRole('button', { name: 'Copy' }).click();
  await page.getByText('Copied.').waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(first);
  await page.keyboard.press('Escape');
  await page.getByText('http://127.0.0.1:9/events').waitFor();
  await checkScreen(page, 'webhook endpoints');

  await page.getByRole('button', { name: 'Replace secret: http' }).click();
  await sheet.getByRole('button', { name: 'Replace secret' }).click();
  await expect.poll(() => sheet.locator('code').innerText()).not.toBe(first);
  await page.keyboard.press('Escape');
  await page.getByText('The former secret signs until').waitFor();

  await page.getByRole('link', { name: 'Deliveries: http' }).click();
  await page.getByText('Nothing here yet.').waitFor();
  await page.getByRole('button', { name: 'Send a test event' }).click();
  await page.getByText('The test event is on its way.').waitFor();
  await page.getByText(/^Test$/).waitFor();
  await page.getByRole('button', { name: 'Replay a period' }).click();
  await checkScreen(page, 'replay of a period');
  await sheet.getByRole('button', { name: 'Replay a period' }).click();
  await page.getByText('Events sent again: 0').waitFor(); // a test is of no fact
  await checkScreen(page, 'webhook deliveries');
});

test('an administrator makes a service token and revokes it', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'admin', '/operate/tokens');
  await page.getByText('No other system uses the API yet.').waitFor();
  await page.getByRole('button', { name: 'New token' }).click();
  const sheet = page.getByRole('dialog');
  await checkScreen(page, 'new service token');
  await sheet.getByLabel('Purpose').fill('ERP');
  await sheet.getByRole('button', { name: 'Create token' }).click();
  await sheet.getByText('Choose at least one right.').waitFor();
  await sheet.getByLabel('Read sales').check();
  await sheet.getByRole('button', { name: 'Create token' }).click();
  const token = await sheet.locator('code').innerText();
  expect(token).toMatch(/^skst_/);
  const asked = (): Promise<number> =>
    fetch(`${it.demo.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: '{ sales(first: 1) { edges { node { id } } } }' }),
    }).then((answer) => answer.status);
  expect(await asked()).toBe(200);
  await page.keyboard.press('Escape');
  await page.getByText('Last used').waitFor();
  await checkScreen(page, 'service tokens');
  await page.getByRole('button', { name: 'Revoke token: ERP' }).click();
  await sheet.getByRole('button', { name: 'Revoke token' }).click();
  await page.getByText('No other system uses the API yet.').waitFor();
  await expect.poll(asked).toBe(401);
});
