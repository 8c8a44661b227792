/** The component in a page of another origin: examples/html-shop. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSales } from './api';
import { violations } from './axe';
import { browserFixture, demoCredentials, startDemo, type Demo } from './shop';

const it = browserFixture();
const html = readFileSync(join(import.meta.dirname, '../../examples/html-shop/index.html'), 'utf8');
let demo: Demo;
let other: Server;
let shop: string;

beforeAll(async () => {
  other = createServer(({ url = '/' }, response) => {
    const { pathname, searchParams } = new URL(url, shop);
    if (pathname !== '/') return void response.writeHead(404).end();
    const page = html.replaceAll('http://localhost:8080', demo.url).replace('sale="flash-sale"', `sale="${searchParams.get('sale') ?? demo.open.slug}"`);
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page.replace('lang="en"', `lang="${searchParams.get('lang') ?? 'en'}"`));
  }).listen(0, '127.0.0.1');
  await new Promise((done) => other.once('listening', done));
  shop = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  demo = await startDemo({ SECKILL_ALLOWED_ORIGINS: shop });
});

afterAll(async () => {
  other?.close();
  await demo?.stop();
});

async function signIn(page: Page, who: string, [account, password, button]: [string, string, string]): Promise<void> {
  const credentials = demoCredentials(who);
  await page.getByLabel(account).fill(credentials.account);
  await page.getByLabel(password).fill(credentials.password);
  await page.getByRole('button', { name: button }).click();
}

test('a buyer of another shop signs in, buys, pays at the bank and comes back', async () => {
  const page = await it.page();
  await page.goto(`${shop}/?from=mail#top`);
  await page.getByLabel('Password').waitFor();
  expect(await violations(page)).toEqual([]);
  await signIn(page, 'alice', ['E-mail or phone number', 'Password', 'Sign in']);
  await page.getByRole('button', { name: 'Buy now' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Buy now' }).click();
  await page.getByRole('button', { name: 'Pay with Test bank' }).waitFor();
  expect(await page.getByRole('timer').innerText()).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Pay with Test bank' }).click();
  await page.waitForURL(`${demo.url}/sandbox/pay/**`);
  expect(await page.locator('main').innerText()).toMatch(/ · Order \S+/);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.getByRole('link', { name: 'Back to the order' }).click();
  await page.waitForURL(`${shop}/?from=mail`);
  await page.getByText('Paid. Thank you!').waitFor(); // the session has outlived the visit to the bank
  await page.getByText('We are packing your order').waitFor();
  expect(await violations(page)).toEqual([]);
});

test('a wrong password, a missing sale, and a worker that is not found are said, in Chinese too', async () => {
  const page = await it.page();
  const warnings: string[] = [];
  page.on('console', (message) => message.text().includes('@seckill/client') && warnings.push(message.text()));
  await page.addInitScript(() => {
    globalThis.Worker = class extends Worker {
      constructor() {
        super('/missing.js');
      }
    };
  });
  await page.goto(`${shop}/?sale=no-such-sale`);
  await page.getByText('There is no such sale.').waitFor();
  await page.goto(`${shop}/?lang=zh-CN`);
  await page.getByLabel('密码').fill('wrong');
  await page.getByLabel('邮箱或手机号').fill('bob@demo.example');
  await page.getByRole('button', { name: '登录' }).click();
  await page.getByRole('alert').filter({ hasText: /密码/ }).waitFor();
  await signIn(page, 'bob', ['邮箱或手机号', '密码', '登录']);
  await page.getByRole('button', { name: '立即抢购' }).click();
  await page.getByRole('button', { name: '使用测试银行支付' }).waitFor();
  expect(warnings).toEqual([expect.stringContaining('no worker for the proof of work')]);
  expect(await violations(page)).toEqual([]);
});

test('a picture answers the captcha, and an upcoming sale counts down', async () => {
  const page = await it.page();
  await page.goto(`${shop}/?sale=${demo.soon.slug}`);
  await page.getByText(/^Opens /).or(page.getByText(/^Ends /)).waitFor();
  expect(await violations(page)).toEqual([]);
});

test('a draw shows until when it takes entries, from the part that is loaded then', async () => {
  const [slug] = await openSales(demo, [{ title: 'Drawn lamp', currencyCode: 'EUR', price: '49.00', listPrice: '99.00', stock: [1], draw: { entrySeconds: 600, offerSeconds: 600 } }]);
  const page = await it.page();
  const loaded: string[] = [];
  page.on('response', (response) => loaded.push(new URL(response.url()).pathname));
  await page.goto(`${shop}/?sale=${demo.soon.slug}`);
  await page.getByText(/^Opens /).or(page.getByText(/^Ends /)).waitFor();
  expect(loaded).not.toContain('/client/seckill-drop-later.js');
  await page.goto(`${shop}/?sale=${slug}`);
  await signIn(page, 'alice', ['E-mail or phone number', 'Password', 'Sign in']);
  await page.getByText(/^Entries until .+ You need not be here/).waitFor();
  expect(loaded.filter((path) => path.startsWith('/client/seckill-drop-'))).toEqual(['/client/seckill-drop-later.js']);
  expect(await page.getByRole('link', { name: 'Continue in the shop' }).getAttribute('href')).toBe(`${demo.url}/s/${slug}`);
  expect(await violations(page)).toEqual([]);
});
