import { expect, test } from 'vitest';
import { openSales } from './api';
import { buy, signIn, demoFixture } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

test('limits of an item and of a sale are what the page says, and every unpaid order is listed', async () => {
  const price = { currencyCode: 'CNY', price: '10.00', listPrice: '20.00', products: 2 };
  const [free, strict] = await openSales(it.demo, [
    { title: 'Free', ...price },
    { title: 'Strict', ...price, purchaseLimit: 1 },
  ]);
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${free}`);
  const choose = async (name: string): Promise<void> => {
    const item = page.getByRole('radio', { name });
    await item.click();
    await expect.poll(() => item.isChecked()).toBe(true);
  };
  await buy(page); // one live order per item
  await choose('Free chair');
  await buy(page);

  await page.goto(`${it.demo.url}/s/${strict}`);
  await buy(page);
  await choose('Strict chair');
  await page.getByText('Limit 1 per person in this sale: you have them.').waitFor();

  await page.goto(`${it.demo.url}/orders`);
  await expect.poll(() => page.locator('main li', { hasText: 'Awaiting payment' }).count()).toBe(3);
});
