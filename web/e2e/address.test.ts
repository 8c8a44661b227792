import { expect, test } from 'vitest';
import { openSales, saveAddress } from './api';
import { checkScreen } from './axe';
import { clickAtBank, button, buy, demoCredentials, signIn, demoFixture, status } from './shop';

const it = demoFixture({ 'shop.seller_name': 'Lamps and More Ltd', 'shop.seller_details': '1 Mill Lane, Leeds | VAT GB 123', 'shop.tax_rate': '20' });

test('a buyer keeps addresses before a sale, on the narrowest phone', async () => {
  const page = await it.page({ viewport: { width: 320, height: 640 } });
  await signIn(page, it.demo, 'alice', '/account');
  await page.getByRole('button', { name: 'Add an address' }).click();
  await page.getByLabel('Phone number').fill('one two');
  await page.getByLabel('Country code (such as US)').fill('CHN'); // a field that is left is checked
  await page.getByText('Enter a phone number, such as').waitFor();
  await page.getByRole('button', { name: 'Save address' }).click();
  await page.getByText('Two letters, such as US.').waitFor();
  expect(await page.getByText('Fill in this field.').count()).toBe(3);
  await checkScreen(page, 'address-errors');
  for (const [label, value] of Object.entries({
    Recipient: 'Lin Xiaoyu',
    'Phone number': '138 0000.1111',
    'Country code (such as US)': 'cn',
    City: 'Hangzhou',
    'Street and number': '90 Wensan Road',
  })) {
    await page.getByLabel(label, { exact: true }).fill(value);
  }
  await checkScreen(page, 'address-form');
  await page.getByRole('button', { name: 'Save address' }).click();
  await page.getByText('Lin Xiaoyu · +8613800001111').waitFor();
  await page.getByText('Hangzhou 90 Wensan Road').waitFor();
  await page.getByText('Default', { exact: true }).waitFor();
  await checkScreen(page, 'addresses');
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('Lin Xiaoyu').waitFor({ state: 'detached' });
});

test('a paid order prints as a receipt with its number, without buttons', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await clickAtBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  const number = (await page.getByRole('heading', { level: 1 }).innerText()).replace('Order ', '');
  const receipt = page.getByText(`Receipt ${number}`, { exact: true });
  expect(await receipt.isVisible()).toBe(false);
  await page.emulateMedia({ media: 'print' });
  expect(await receipt.isVisible()).toBe(true);
  for (const line of ['Lamps and More Ltd', '1 Mill Lane, Leeds', 'VAT GB 123']) expect(await page.getByText(line, { exact: true }).isVisible(), line).toBe(true);
  expect(await page.locator('main button:visible').count()).toBe(0);
  expect(await page.getByRole('navigation').filter({ visible: true }).count()).toBe(0);
  expect((await page.pdf({ format: 'A4' })).byteLength).toBeGreaterThan(1_000);
});

test('prices are in the currency of their sale everywhere, and the address of a paid order is corrected until staff see the new one', async () => {
  const [yen, euro] = await openSales(it.demo, [
    { title: 'Tokyo', currencyCode: 'JPY', price: '12800', listPrice: '25600', requiresAddress: true },
    { title: 'Berlin', currencyCode: 'EUR', price: '1299.50', listPrice: '1999.00' },
  ]);
  const bob = demoCredentials('bob');
  await saveAddress(it.demo, bob, { name: 'Lin Xiaoyu', phone: '+86 138 0000 1111', country: 'CN', city: 'Hangzhou', street: '90 Wensan Road' });
  const page = await it.page();
  await signIn(page, it.demo, bob);
  const language = page.locator('header button[lang]');
  const card = (title: string) => page.locator('main li, main a', { hasText: title }).first();
  /** Checks that a place shows amounts in English and in Chinese. */
  const shows = async (english: string[], chinese: string[], at = () => page.locator('main')): Promise<void> => {
    for (const amounts of [english, chinese]) {
      for (const amount of amounts) await at().getByText(amount).first().waitFor();
      await language.click();
    }
  };
  await shows(['JPY 12,800'], ['JP¥12,800'], () => card('Tokyo'));
  await shows(['€1,299.50'], ['€1,299.50'], () => card('Berlin'));
  await page.goto(`${it.demo.url}/s/${euro}`);
  await button(page, 'buy').waitFor();
  await shows(['€1,299.50', '€1,999', 'Save €699.50'], ['€1,299.50', '€1,999', '€699.50']);
  await page.goto(`${it.demo.url}/s/${yen}`);
  await button(page, 'buy').waitFor();
  await shows(['JPY 12,800', 'JPY 25,600'], ['JP¥12,800', 'JP¥25,600']);

  await page.getByLabel('Quantity').selectOption('2');
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
  await clickAtBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  await shows(['JPY 25,600', 'JPY 12,800'], ['JP¥25,600', 'JP¥12,800']);

  await page.getByText('Hangzhou 90 Wensan Road').waitFor();
  await page.getByRole('button', { name: 'Correct the address' }).click();
  const sheet = page.getByRole('dialog');
  await sheet.getByLabel('Street and number').fill('7 Lake Street');
  await checkScreen(page, 'correct-address');
  await sheet.getByRole('button', { name: 'Save address' }).click();
  await sheet.waitFor({ state: 'detached' });
  await page.getByText('Hangzhou 7 Lake Street').waitFor();
  await page.getByText('The delivery address was corrected.').waitFor();

  const number = (await page.getByRole('heading', { level: 1 }).innerText()).replace('Order ', '');
  const staff = await it.page();
  await signIn(staff, it.demo, 'operator', '/operate/orders');
  await staff.locator('main tbody', { hasText: number }).getByRole('link', { name: number }).click();
  await staff.getByText('Hangzhou 7 Lake Street').waitFor();
  expect(await staff.getByText('90 Wensan Road').count()).toBe(0);
});
