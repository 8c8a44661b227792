/** Fixtures and shared steps of the browser tests: a browser, a demo server, and common actions. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';

/** A sale as the demo prints it. */
export interface DemoSale {
  title: string;
  slug: string;
}

/** A running demo server with two sales and an account of each role. */
export interface Demo {
  url: string;
  open: DemoSale;
  soon: DemoSale;
  stop(): Promise<void>;
}

/** The credentials of an account. */
export interface Credentials {
  account: string;
  password: string;
}

/** Settings of a server: variables of its environment, and of a demo also keys of tables, which become flags. */
export type Settings = Record<string, string>;

const demoPassword = 'flash-sale-demo';

/** Timeout for one element or event on a page, in ms; long because test machines are busy. */
const WAIT_TIMEOUT_MS = 120_000;

const browsers = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** Flags of a browser that tests drive. */
export const browserFlags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Returns the credentials of a demo account, by the part of its address before the @. */
export const demoCredentials = (who: string): Credentials => ({ account: `${who}@demo.example`, password: demoPassword });

/** Starts a demo on free ports and reads its address and sales from its output. */
export async function startDemo(settings: Settings = {}): Promise<Demo> {
  const isKey = ([name]: [string, string]): boolean => name.includes('.');
  const flags = Object.entries(settings).filter(isKey).map(([key, value]) => `--${key.replaceAll('_', '-')}=${value}`);
  const args = ['demo', '--http-addr', '127.0.0.1:0', '--admin-addr', '127.0.0.1:0', '--log-level', 'warn', ...flags];
  const env = { ...process.env, SECKILL_REQUEST_TIMEOUT: '1m', ...Object.fromEntries(Object.entries(settings).filter((entry) => !isKey(entry))) };
  const child = spawn(process.env['SECKILL_BINARY']!, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
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

/** Where Chromium is. */
export function browserPath(): string {
  const found = process.env['CHROMIUM'] ?? browsers.find(existsSync);
  if (!found) throw new Error('no Chromium found: apt-get install chromium, or name one in CHROMIUM');
  return found;
}

/** Starts a browser. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: browserPath(), args: browserFlags });
}

/** The browser of a test file. */
export interface BrowserFixture {
  /** A page of a new, empty browser profile. It fails the test on any script error. */
  page(options?: BrowserContextOptions): Promise<Page>;
  /** Keeps the pages of a test open for those that follow. */
  lasting?: boolean;
}

/** The browser and the demo server of a test file. */
export interface DemoFixture extends BrowserFixture {
  demo: Demo;
}

/** Starts a browser and a demo server for the tests of a file. */
export function demoFixture(settings: Settings = {}): DemoFixture {
  const it = browserFixture() as DemoFixture;
  beforeAll(async () => {
    it.demo = await startDemo(settings);
  });
  afterAll(() => it.demo?.stop());
  return it;
}

/** Lets the page wait two minutes for an answer, which a busy machine does not exceed. */
function waitLonger(): void {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = (ms) => timeout(Math.max(ms, 120_000));
}

/** Records layout shifts without recent user input; `expectNoLayoutShifts` in axe.ts reads them. */
function keepShifts(): void {
  interface Shift extends PerformanceEntry {
    value: number;
    hadRecentInput: boolean;
    sources: { node: Node | null; previousRect: DOMRectReadOnly; currentRect: DOMRectReadOnly }[];
  }
  const shifts: string[] = ((window as unknown as { shifts: string[] }).shifts = []);
  const where = ({ x, y, width, height }: DOMRectReadOnly): string => [x, y, width, height].map(Math.round).join(' ');
  const what = (node: Node | null): string => (node instanceof Element ? node.outerHTML : (node?.textContent ?? 'what is gone')).slice(0, 100);
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries() as Shift[]) {
      if (!hadRecentInput) shifts.push(`${value.toFixed(4)} by ${sources.map(({ node, previousRect, currentRect }) => `${what(node)} (${where(previousRect)} to ${where(currentRect)})`).join(' | ')}`);
    }
  }).observe({ type: 'layout-shift', buffered: true });
}

/** Kills the GPU process of a browser; the browser starts another. */
async function restartGpuProcess(browser: Browser): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  for (const { type, id } of processInfo) if (type === 'GPU') process.kill(id, 'SIGKILL');
  await session.detach();
}

/**
 * Watches a page until it is closed, and restarts the GPU process if no frame is painted for 20 s. When that process hangs,
 * which is rare, pages still run scripts, but a click waits forever for two frames.
 */
async function watchFrames(page: Page, restart: (why: string) => Promise<void>): Promise<void> {
  const answer = (patience: number): Promise<string> =>
    new Promise((resolve) => {
      const late = setTimeout(() => resolve(document.visibilityState), patience);
      requestAnimationFrame(() => (clearTimeout(late), resolve('')));
    });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5_000).unref());
    if (page.isClosed()) return;
    const stalled = await page.evaluate(answer, 20_000).catch(() => ''); // the page navigates or closes
    if (stalled) await restart(`${page.url()}: ${stalled}, but no frame in 20 s; the GPU process was restarted`);
  }
}

/** Starts a browser for the tests of a file. */
export function browserFixture(): BrowserFixture {
  let browser: Browser;
  const errors: string[] = [];
  let stalls: string[] = [];
  let restarting: Promise<void> | undefined;
  let pages: Page[] = [];
  const restart = (why: string): Promise<void> => {
    stalls.push(why);
    restarting ??= restartGpuProcess(browser)
      .catch(() => {}) // the browser closes
      .finally(() => setTimeout(() => (restarting = undefined), 60_000).unref()); // one for all pages
    return restarting;
  };
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterEach(async ({ task }) => {
    // Add the text and a screenshot of each page to a failed test.
    for (const [n, page] of pages.entries()) {
      if (task.result?.state !== 'fail' || page.isClosed()) continue;
      const text = await page.innerText('body').catch(String);
      console.error(`${task.name}, page ${n}: ${page.url()}\n${text}`);
      const [error] = task.result.errors ?? [];
      const seen = ['', ...stalls, `page ${n}, ${new URL(page.url()).pathname}: ${text.replace(/\s+/g, ' ').slice(0, 400)}`].join('\n');
      if (error) error.message += seen;
      if (error?.stack) error.stack += seen; // what reporters print
      const file = `failed-${task.name.replace(/\W+/g, '-').slice(0, 60)}-${n}.png`;
      await page.screenshot({ path: join(import.meta.dirname, '../screens', file), fullPage: true }).catch(() => {});
    }
    stalls = [];
    if (it.lasting) return;
    await Promise.all(pages.map((page) => page.context().close()));
    pages = [];
  });
  afterAll(async () => {
    await browser?.close();
    if (errors.length) throw new Error(`the page complained:\n${errors.join('\n')}`);
  });
  const it: BrowserFixture = {
    page: async (options = {}) => {
      const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(WAIT_TIMEOUT_MS); // also of tabs and popups
      await context.addInitScript(waitLonger);
      await context.addInitScript(keepShifts);
      const page = await context.newPage();
      pages.push(page);
      void watchFrames(page, restart);
      page.on('pageerror', (error) => errors.push(error.message));
      page.on('console', (message) => {
        if (/Content Security Policy|Refused to/.test(message.text())) errors.push(message.text());
      });
      return page;
    },
  };
  return it;
}

/** Signs in, as a demo account (see demoCredentials) or with given credentials, and waits for the page `next`. */
export async function signIn(page: Page, { url }: { url: string }, who: string | Credentials, next = '/'): Promise<void> {
  const { account, password } = typeof who === 'string' ? demoCredentials(who) : who;
  await page.goto(`${url}/sign-in?next=${encodeURIComponent(next)}`);
  await fillSignIn(page, account, password);
  await page.waitForURL(url + next);
}

/** Fills the form for signing in and sends it. */
export async function fillSignIn(page: Page, account: string, password = demoPassword): Promise<void> {
  await page.getByLabel(/E-mail or phone|邮箱或手机号/).fill(account);
  await page.getByLabel(/^(Password|密码)$/).fill(password);
  await page.locator('main form button.btn-main').click();
}

/** Locates the primary button of the sale page in one of its states. */
export const button = (page: Page, kind: string) => page.locator(`[data-button="${kind}"]`);

/** Selects picture captchas for the documents that the page opens next, as if the buyer had chosen them on an earlier visit. */
export const preferPictures = (page: Page): Promise<unknown> => page.addInitScript(() => localStorage.setItem('captcha', 'picture'));

/** Lets the browser answer the captcha: it does so by itself, unless the buyer prefers pictures and has to choose it in the dialog. */
export async function checkByBrowser(page: Page): Promise<void> {
  // With the captcha answered ahead, the press may have left the page already.
  if (await page.evaluate(() => localStorage.getItem('captcha') !== 'picture').catch(() => true)) return;
  await page.getByRole('dialog').getByRole('button', { name: /Verify automatically|免输入验证/ }).click();
}

/** Buys on an open sale page, up to the order. */
export async function buy(page: Page): Promise<void> {
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
}

/** Opens the bank's page and presses one of its buttons. */
export async function clickAtBank(page: Page, act: string): Promise<void> {
  const opened = page.waitForEvent('popup');
  await page.getByRole('link', { name: 'Open the payment page' }).click();
  const bank = await opened;
  await bank.getByRole('button', { name: act, exact: true }).click();
  await bank.getByRole('status').waitFor();
  await bank.close();
}

/** Locates the status chip of an order. */
export const status = (page: Page, text: string) => page.locator('main .chip', { hasText: text });

/** Locates the indicator of the live connection in one of its states. */
export const pill = (page: Page, state: string) => page.locator(`[data-line="${state}"]`);

/** What is left of the chosen item, as the page shows it. */
export const stock = async (page: Page): Promise<number> => Number(await page.locator('[data-stock]').first().getAttribute('data-stock'));

/** Waits until the page shows less stock than before. */
export async function stockMoves(page: Page, before: number): Promise<void> {
  await page.waitForFunction((was) => Number(document.querySelector('[data-stock]')?.getAttribute('data-stock')) < was, before);
}

/** Records the idempotency keys of the orders that the page sends. A retry has the same key. */
export function recordOrderKeys(page: Page): Set<string> {
  const keys = new Set<string>();
  page.on('request', (request) => {
    const body = request.url().endsWith('/graphql') && request.method() === 'POST' ? request.postDataJSON() : null;
    if (body?.operationName === 'PlaceOrder') keys.add(body.variables.input.idempotencyKey);
  });
  return keys;
}

/** Records the names of the operations that the page sends; the array grows with each request. */
export function recordOperations(page: Page): string[] {
  const names: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/graphql') && request.method() === 'POST') {
      names.push(request.postDataJSON().operationName);
    }
  });
  return names;
}
