/**
 * Every screen in both languages and both themes: no accessibility violation by
 * axe, and nothing wider than a phone of 320 px. With SCREENS=1 the pictures of
 * the screens go to screens/, for a person to look at.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { faults } from './axe';
import { button, buy, signIn, stage } from './shop';

const it = stage('--profile', 'development', '--limits', 'off');
it.lasting = true;
const pictures = join(import.meta.dirname, '../screens');

/** A screen: who looks, and how it is come to. */
interface Screen {
  name: string;
  as?: string;
  open(page: Page): Promise<void>;
}

const goto = async (page: Page, path: string, sign: string): Promise<void> => {
  await page.goto(it.demo.url + path);
  await page.locator(sign).first().waitFor();
};
const openSale = (page: Page): Promise<void> => goto(page, `/s/${it.demo.open.slug}`, '[data-button]');

const screens: Screen[] = [
  { name: 'list', open: (page) => goto(page, '/', 'main h3') },
  { name: 'list-nothing-found', open: (page) => goto(page, '/?q=zzzz', 'main .note') },
  { name: 'sale', open: openSale },
  { name: 'sale-soon', as: 'bob', open: (page) => goto(page, `/s/${it.demo.soon.slug}`, '[data-button]') },
  { name: 'sign-in', open: (page) => goto(page, '/sign-in', 'form') },
  { name: 'register', open: (page) => goto(page, '/register', 'form') },
  {
    name: 'sign-in-wrong',
    open: async (page) => {
      await goto(page, '/sign-in', 'form');
      await page.locator('input[autocomplete=username]').fill('nobody@demo.example');
      await page.locator('input[autocomplete=current-password]').fill('wrong');
      await page.locator('main form button.btn-main').click();
      await page.locator('[role=alert], dialog').first().waitFor();
    },
  },
  {
    name: 'check',
    as: 'bob',
    open: async (page) => {
      await openSale(page);
      await button(page, 'buy').click();
      await page.locator('dialog canvas').waitFor();
    },
  },
  {
    name: 'check-wrong',
    as: 'bob',
    open: async (page) => {
      await openSale(page);
      await button(page, 'buy').click();
      await page.locator('dialog canvas').waitFor();
      await page.locator('dialog input').fill('0');
      await page.locator('dialog .btn-main').click();
      await page.locator('dialog [role=alert]').waitFor();
    },
  },
  { name: 'sale-bought', as: 'alice', open: (page) => goto(page, `/s/${it.demo.open.slug}`, '[data-button="pay"]') },
  { name: 'orders', as: 'alice', open: (page) => goto(page, '/orders', 'main li') },
  { name: 'orders-none', as: 'bob', open: (page) => goto(page, '/orders', 'main .note') },
  { name: 'orders-signed-out', open: (page) => goto(page, '/orders', 'main .note') },
  {
    name: 'order',
    as: 'alice',
    open: async (page) => {
      await goto(page, '/orders', 'main li a');
      await page.locator('main li a').first().click();
      await page.locator('main dl').waitFor();
    },
  },
  {
    name: 'order-pay',
    as: 'alice',
    open: async (page) => {
      await goto(page, '/orders', 'main li a');
      await page.locator('main li a').first().click();
      await page.getByRole('button', { name: /^(Pay|支付) / }).click();
      await page.locator('svg[role=img]').waitFor();
    },
  },
  {
    name: 'order-cancel',
    as: 'alice',
    open: async (page) => {
      await goto(page, '/orders', 'main li a');
      await page.locator('main li a').first().click();
      await page.getByRole('button', { name: /Cancel the order|取消订单/ }).click();
      await page.locator('dialog').waitFor();
    },
  },
  {
    name: 'account-menu',
    as: 'alice',
    open: async (page) => {
      await goto(page, '/', 'main h3');
      await page.locator('summary').click();
    },
  },
  { name: 'operate-sales', as: 'admin', open: (page) => goto(page, '/operate', 'main li') },
  {
    name: 'operate-sale',
    as: 'admin',
    open: async (page) => {
      await goto(page, '/operate', 'main li');
      await page.getByRole('link', { name: it.demo.open.title }).click();
      await page.locator('#figures').waitFor();
      await page.locator('summary.head').click();
    },
  },
  {
    name: 'operate-pause',
    as: 'admin',
    open: async (page) => {
      await goto(page, '/operate', 'main li');
      await page.getByRole('link', { name: it.demo.open.title }).click();
      await page.getByRole('button', { name: /^(Pause|暂停)$/ }).click();
      await page.locator('dialog').waitFor();
    },
  },
  { name: 'operate-new', as: 'admin', open: (page) => goto(page, '/operate/new', 'fieldset') },
  { name: 'operate-goods', as: 'admin', open: (page) => goto(page, '/operate/goods', 'main li') },
  {
    name: 'operate-goods-new',
    as: 'admin',
    open: async (page) => {
      await goto(page, '/operate/goods', 'main li');
      await page.getByRole('button', { name: /New goods|新建商品/ }).click();
      await page.locator('dialog').waitFor();
    },
  },
  { name: 'operate-orders', as: 'admin', open: (page) => goto(page, '/operate/orders', 'main li') },
  { name: 'operate-aside', as: 'admin', open: (page) => goto(page, '/operate/aside', 'main section') },
  { name: 'missing', open: (page) => goto(page, '/nowhere', 'h1') },
  { name: 'sale-missing', open: (page) => goto(page, '/s/nowhere', 'h1') },
];

beforeAll(async () => {
  mkdirSync(pictures, { recursive: true });
  const page = await it.page();
  await signIn(page, it.demo, 'alice', `/s/${it.demo.open.slug}`);
  await buy(page);
  await page.context().close();
});

describe.each(['en-GB', 'zh-CN'])('in %s', (locale) => {
  const pages = new Map<string, Page>();
  test.each(screens)('$name is accessible and fits, light and dark', async ({ name, as: who = '', open }) => {
    let page = pages.get(who);
    if (!page) {
      pages.set(who, (page = await it.page({ locale, reducedMotion: 'reduce' })));
      if (who) await signIn(page, it.demo, who);
    }
    await open(page);
    const shot = process.env['SCREENS'] ? join(pictures, `${name}-${locale.slice(0, 2)}`) : null;
    const found = await faults(page, shot);
    expect(found).toEqual([]);
  });
});
