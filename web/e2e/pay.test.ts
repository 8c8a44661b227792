import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectStatusVisible } from './axe';
import { clickAtBank, button, buy, signIn, demoFixture, status } from './shop';

const it = demoFixture();

/** Buys and goes to the order. */
async function order(who: string): Promise<Page> {
  const page = await it.page();
  await signIn(page, it.demo, who, `/s/${it.demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
  return page;
}

test('a buyer pays by QR code after three presses from the list, sees it at once, and asks for the money back', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice');
  await page.evaluate(() => addEventListener('click', () => sessionStorage.setItem('presses', `${Number(sessionStorage.getItem('presses')) + 1}`), true));
  await page.getByRole('link', { name: it.demo.open.title }).click();
  await button(page, 'buy').click();
  await page.getByText('You got it!').waitFor();
  await expectStatusVisible(page, 'an order that waits for its payment');
  await button(page, 'pay').click();
  await page.getByText('Time left to pay').waitFor();
  await page.getByRole('img', { name: 'Scan to pay' }).waitFor();
  expect(await page.evaluate(() => sessionStorage.getItem('presses'))).toBe('3');
  await clickAtBank(page, 'Approve'); // a buyer without a second device presses once more
  await status(page, 'Paid').waitFor();
  expect(await page.getByRole('img', { name: 'Scan to pay' }).count()).toBe(0);

  await page.getByRole('button', { name: 'Request refund' }).click();
  await page.getByLabel('Reason').fill('Too heavy');
  await page.getByRole('dialog').getByRole('button', { name: /^Request refund of ¥/ }).click();
  await status(page, 'Refund pending').waitFor();
  await page.getByText('Too heavy', { exact: true }).waitFor();
  expect(await page.getByRole('heading', { name: 'Order history' }).count()).toBe(1);
});

test('a buyer without enough money reads why, and pays again at once', async () => {
  const page = await order('bob');
  await clickAtBank(page, 'Decline: no money');
  await page.getByText('There is not enough money in the account.').waitFor(); // pushed to the open page
  await page.getByRole('button', { name: /^Pay ¥.* again$/ }).click();
  await clickAtBank(page, 'Approve, notify three times');
  await status(page, 'Paid').waitFor();
});

test('a started payment continues after a reload', async () => {
  const page = await order('operator');
  const address = await page.getByRole('link', { name: 'Open the payment page' }).getAttribute('href');
  await page.reload();
  await page.getByRole('button', { name: /^Pay ¥/ }).click();
  expect(await page.getByRole('link', { name: 'Open the payment page' }).getAttribute('href')).toBe(address);
});

test('a cancelled order gives the unit back, and the buyer may try again', async () => {
  const page = await order('admin');
  await page.getByRole('button', { name: 'Cancel order', exact: true }).click();
  await page.getByRole('button', { name: 'Yes, cancel' }).click();
  await status(page, 'Cancelled').waitFor();
  await page.locator('main dl a').click();
  await button(page, 'buy').waitFor();
  await buy(page);
});
