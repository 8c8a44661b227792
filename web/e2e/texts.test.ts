/** Texts of operators from right to left, and of characters outside the Basic Multilingual Plane. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { openSales } from './api';
import { button, buy, clickAtBank, demoFixture, signIn, status } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off', 'shop.seller_name': 'متجر النور (ش.م.)' });
const PHONE = 'هاتف ذكي 5G (أسود)';
const TITLE = `عرض اليوم: ${PHONE}`;
let slug: string;
beforeAll(async () => {
  [slug] = (await openSales(it.demo, [{ title: TITLE, names: [PHONE], currencyCode: 'EUR', price: '199.50', listPrice: '299.00' }])) as [string];
});

/**
 * The visible places of a text that are torn: its last character is not at the left end of its line, or a character of the text around it is
 * between its own.
 */
const torn = (page: Page, phrase: string): Promise<{ whole: number; torn: string[] }> =>
  page.evaluate((wanted) => {
    const box = (node: Node, from: number, to: number): DOMRect => {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to);
      return range.getBoundingClientRect();
    };
    const textsIn = (root: Node): Text[] => {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      const found: Text[] = [];
      while (walker.nextNode()) found.push(walker.currentNode as Text);
      return found;
    };
    let whole = 0;
    const found: string[] = [];
    for (const node of textsIn(document.body)) {
      const at = node.data.indexOf(wanted);
      if (at < 0 || !node.parentElement?.checkVisibility()) continue;
      const all = box(node, at, at + wanted.length);
      const [first, last] = [box(node, at, at + 1), box(node, at + wanted.length - 1, at + wanted.length)];
      if (!all.width || (first.top + first.bottom) / 2 < last.top) continue; // on several lines, whose boxes may overlap
      let block: Element = node.parentElement;
      while (getComputedStyle(block).display.startsWith('inline') && block.parentElement) block = block.parentElement;
      const between = textsIn(block).some((other) =>
        [...other.data].some((char, n) => {
          if (!char.trim() || (other === node && n >= at && n < at + wanted.length)) return false;
          const { left, right, top, bottom, width } = box(other, n, n + 1);
          return width > 0 && top < first.bottom && bottom > first.top && (left + right) / 2 > all.left && (left + right) / 2 < all.right;
        }),
      );
      if (between || last.left > first.left || last.left > all.left + 1) found.push(block.outerHTML.slice(0, 300));
      else whole++;
    }
    return { whole, torn: found };
  }, phrase);

test('an Arabic product is whole in the shop, on its button, in the order, the receipt, and the tables of the operators', async () => {
  const page = await it.page({ viewport: { width: 1280, height: 900 } });
  const phone = await it.page({ viewport: { width: 390, height: 844 } });
  const found: Record<string, unknown> = {};
  const look = async (name: string, at = page): Promise<void> => {
    await at.getByText(PHONE).filter({ visible: true }).first().waitFor();
    if (process.env['SCREENS']) await at.screenshot({ path: `screens/arabic-${name}.png`, fullPage: true });
    const { whole, torn: places } = await torn(at, PHONE);
    if (!whole || places.length) found[name] = places;
  };
  await page.goto(it.demo.url);
  await look('list');
  await signIn(page, it.demo, 'alice', `/s/${slug}`);
  await page.locator('section.sheet').getByText(PHONE).waitFor();
  await look('sale');
  await phone.goto(`${it.demo.url}/s/${slug}`);
  await look('sale-phone', phone);
  await buy(page);
  await look('won');
  await button(page, 'pay').click();
  await page.locator('main dl').waitFor();
  await look('order');
  await clickAtBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  await page.emulateMedia({ media: 'print' });
  await look('receipt');
  await page.emulateMedia({ media: 'screen' });
  await page.goto(`${it.demo.url}/orders`);
  await look('orders');
  const staff = await it.page({ viewport: { width: 1280, height: 900 } });
  await signIn(staff, it.demo, 'admin', '/operate');
  await look('operate', staff);
  await staff.getByRole('link', { name: TITLE }).click();
  await staff.locator('#figures').waitFor();
  await look('operate-sale', staff);
  for (const path of ['goods', 'orders']) {
    await staff.goto(`${it.demo.url}/operate/${path}`);
    await look(`operate-${path}`, staff);
  }
  expect(found).toEqual({});
});

test('a name of 100 emoji is typed, stored and shown', async () => {
  const name = '🐼'.repeat(100);
  const page = await it.page();
  await signIn(page, it.demo, 'operator', '/operate/goods');
  await page.getByRole('button', { name: 'New product' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').click();
  await page.keyboard.insertText(name);
  expect(await form.getByLabel('Name').inputValue()).toBe(name);
  await form.getByLabel('List price').fill('9');
  await form.getByRole('button', { name: 'Create' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByText(name, { exact: true }).waitFor();
});
