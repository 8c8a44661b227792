/** A demo server of the test's own, a browser, and the steps that journeys share. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';

/** A sale as the demo prints it. */
interface DemoSale {
  title: string;
  slug: string;
}

/** A running demo. */
export interface Demo {
  url: string;
  open: DemoSale;
  soon: DemoSale;
  stop(): Promise<void>;
}

const password = 'flash-sale-demo';
const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts a demo on free ports and reads from its greeting where things are. */
export async function startDemo(...more: string[]): Promise<Demo> {
  const args = ['demo', '--http-addr', '127.0.0.1:0', '--admin-addr', '127.0.0.1:0', '--log-level', 'warn', ...more];
  const child = spawn(process.env['SECKILL_BINARY']!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const sales: DemoSale[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    let shop = '';
    createInterface(child.stdout).on('line', (line) => {
      shop ||= /^\s+Shop\s+(\S+?)\/?$/.exec(line)?.[1] ?? '';
      const sale = /^\s+Open(?:s soon| now)\s+(.+?)\s{2,}\S+\/s\/(\S+)/.exec(line);
      if (sale) sales.push({ title: sale[1]!, slug: sale[2]! });
      if (shop && sales.length === 2) resolve(shop);
    });
    child.once('exit', (code) => reject(new Error(`demo ended with ${code}`)));
  });
  return {
    url,
    open: sales[0]!,
    soon: sales[1]!,
    stop: () => (child.kill('SIGTERM'), ended),
  };
}

/** Starts a browser. */
export function startBrowser(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? browsers.find(existsSync);
  if (!executablePath) throw new Error('no Chromium found: apt-get install chromium, or name one in CHROMIUM');
  return chromium.launch({ executablePath, args: flags });
}

/** What a test file has at hand. */
export interface Stage {
  demo: Demo;
  /** A page of a new, empty browser profile. It fails the test on any script error. */
  page(options?: BrowserContextOptions): Promise<Page>;
}

/** Sets a stage for the tests of a file. */
export function stage(...args: string[]): Stage {
  let browser: Browser;
  const errors: string[] = [];
  let pages: Page[] = [];
  const it = {
    page: async (options: BrowserContextOptions = {}) => {
      const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      pages.push(page);
      page.on('pageerror', (error) => errors.push(error.message));
      page.on('console', (message) => {
        if (/Content Security Policy|Refused to/.test(message.text())) errors.push(message.text());
      });
      return page;
    },
  } as Stage;
  beforeAll(async () => {
    [it.demo, browser] = await Promise.all([startDemo(...args), startBrowser()]);
  });
  afterEach(async ({ task }) => {
    // What a failed journey looked like at its end.
    for (const [n, page] of pages.entries()) {
      if (task.result?.state !== 'fail' || page.isClosed()) continue;
      const file = `failed-${task.name.replace(/\W+/g, '-').slice(0, 60)}-${n}.png`;
      await page.screenshot({ path: join(import.meta.dirname, '../screens', file), fullPage: true }).catch(() => {});
    }
    if (task.result?.state === 'fail') pages = [];
  });
  afterAll(async () => {
    await Promise.all([browser?.close(), it.demo?.stop()]);
    if (errors.length) throw new Error(`the page complained:\n${errors.join('\n')}`);
  });
  return it;
}

/** Signs in as a demo account and comes back to a page. */
export async function signIn(page: Page, { url }: Demo, who: string, next = '/'): Promise<void> {
  await page.goto(`${url}/sign-in?next=${encodeURIComponent(next)}`);
  await fillSignIn(page, `${who}@demo.example`);
  await page.waitForURL(url + next);
}

/** Fills the form for signing in and sends it. */
export async function fillSignIn(page: Page, account: string): Promise<void> {
  await page.getByLabel(/E-mail or phone|邮箱或手机号/).fill(account);
  await page.getByLabel(/^(Password|密码)$/).fill(password);
  await page.locator('main form button.btn-main').click();
}

/** The big button in one of its states. */
export const button = (page: Page, kind: string) => page.locator(`[data-button="${kind}"]`);

/** Lets the browser answer the captcha, from the open sheet. Once chosen, it does so by itself the next time. */
export async function checkByBrowser(page: Page): Promise<void> {
  if (await page.evaluate(() => localStorage.getItem('captcha') === 'browser')) return;
  await page.getByRole('dialog').getByRole('button', { name: /No picture|不看图/ }).click();
}

/** Buys on an open sale page, up to the order. */
export async function buy(page: Page): Promise<void> {
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
}

/** Names of the operations that the page sends, as they go out. */
export function sent(page: Page): string[] {
  const names: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/graphql') && request.method() === 'POST') {
      names.push(request.postDataJSON().operationName);
    }
  });
  return names;
}
