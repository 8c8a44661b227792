import { expect, test } from 'vitest';
import { look } from './axe';
import { atTheBank, button, buy, signIn, stage, status } from './shop';

const it = stage();

test('a buyer keeps addresses before a sale, on the narrowest phone', async () => {
  const page = await it.page({ viewport: { width: 320, height: 640 } });
  await signIn(page, it.demo, 'alice', '/account');
  await page.getByRole('button', { name: 'Add an address' }).click();
  await page.getByLabel('Phone number').fill('one two');
  await page.getByLabel('Country code (such as US)').fill('CHN'); // a field that is left is checked
  await page.getByText('Begin with a digit or +').waitFor();
  await page.getByRole('button', { name: 'Save address' }).click();
  await page.getByText('Two letters, such as US.').waitFor();
  expect(await page.getByText('Fill in this field.').count()).toBe(3);
  await look(page, 'address-errors');
  for (const [label, value] of Object.entries({
    Recipient: 'Lin Xiaoyu',
    'Phone number': '+86 138 0000 1111',
    'Country code (such as US)': 'cn',
    City: 'Hangzhou',
    'Street and number': '90 Wensan Road',
  })) {
    await page.getByLabel(label, { exact: true }).fill(value);
  }
  await look(page, 'address-form');
  await page.getByRole('button', { name: 'Save address' }).click();
  await page.getByText('Lin Xiaoyu · +86 138 0000 1111').waitFor();
  await page.getByText('Hangzhou 90 Wensan Road').waitFor();
  await page.getByText('Default', { exact: true }).waitFor();
  await look(page, 'addresses');
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('Lin Xiaoyu').waitFor({ state: 'detached' });
});

test('a paid order prints as a receipt with its number, without buttons', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await atTheBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  const number = (await page.getByRole('heading', { level: 1 }).innerText()).replace('Order ', '');
  const receipt = page.getByText(`Receipt ${number}`, { exact: true });
  expect(await receipt.isVisible()).toBe(false);
  await page.emulateMedia({ media: 'print' });
  expect(await receipt.isVisible()).toBe(true);
  expect(await page.locator('main button:visible').count()).toBe(0);
  expect(await page.getByRole('navigation').filter({ visible: true }).count()).toBe(0);
  expect((await page.pdf({ format: 'A4' })).byteLength).toBeGreaterThan(1_000);
});
