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
  await checkScreen(page, 'webhook deliveries');
});
