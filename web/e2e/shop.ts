/** What every journey needs: a browser, a shop to walk through, and the steps that journeys share. */
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

/** A running shop with what the demo shows: two sales, an account of each kind. */
export interface Demo {
  url: string;
  open: DemoSale;
  soon: DemoSale;
  stop(): Promise<void>;
}

/** An account. */
export interface Person {
  account: string;
  password: string;
}

/** Settings of a server, as its environment has them. */
export type Settings = Record<string, string>;

const demoPassword = 'flash-sale-demo';

/** Longest wait for one thing on a page, in ms: a busy machine is slow. */
const PATIENCE_MS = 120_000;

const browsers = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** Flags of a browser that tests drive. */
export const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** An account of the demo, by the first part of its name. */
export const demoPerson = (who: string): Person => ({ account: `${who}@demo.example`, password: demoPassword });

/** Starts a demo on free ports and reads from its greeting where things are. */
export async function startDemo(settings: Settings = {}): Promise<Demo> {
  const args = ['demo', '--http-addr', '127.0.0.1:0', '--admin-addr', '127.0.0.1:0', '--log-level', 'warn'];
  const env = { ...process.env, SECKILL_REQUEST_TIMEOUT: '1m', ...settings };
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
  return chromium.launch({ executablePath: browserPath(), args: flags });
}

/** Pages of the browser of a test file. */
export interface Pages {
  /** A page of a new, empty browser profile. It fails the test on any script error. */
  page(options?: BrowserContextOptions): Promise<Page>;
  /** Keeps the pages of a test open for those that follow. */
  lasting?: boolean;
}

/** What a test file has at hand. */
export interface Stage extends Pages {
  demo: Demo;
}

/** Sets a stage with a demo for the tests of a file. */
export function stage(settings: Settings = {}): Stage {
  const it = curtain() as Stage;
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

/** Keeps what moves on the page without a press, as layout shift counts it; `stood` in axe.ts reads it. */
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

/** Ends the process of a browser that draws; the browser starts another. */
async function restartDrawing(browser: Browser): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  for (const { type, id } of processInfo) if (type === 'GPU') process.kill(id, 'SIGKILL');
  await session.detach();
}

/**
 * Watches until a page is closed that the browser draws it. When the drawing process of Chromium hangs, which is rare, pages
 * still answer scripts, but a click waits for two frames that never come.
 */
async function keepDrawing(page: Page, restart: (why: string) => Promise<void>): Promise<void> {
  const answer = (patience: number): Promise<string> =>
    new Promise((resolve) => {
      const late = setTimeout(() => resolve(document.visibilityState), patience);
      requestAnimationFrame(() => (clearTimeout(late), resolve('')));
    });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5_000).unref());
    if (page.isClosed()) return;
    const stalled = await page.evaluate(answer, 20_000).catch(() => ''); // it goes to another page, or closes
    if (stalled) await restart(`${page.url()}: ${stalled}, but no frame in 20 s; the drawing process was restarted`);
  }
}

/** Starts a browser for the tests of a file. */
export function curtain(): Pages {
  let browser: Browser;
  const errors: string[] = [];
  let stalls: string[] = [];
  let restarting: Promise<void> | undefined;
  let pages: Page[] = [];
  const restart = (why: string): Promise<void> => {
    stalls.push(why);
    restarting ??= restartDrawing(browser)
      .catch(() => {}) // the browser closes
      .finally(() => setTimeout(() => (restarting = undefined), 60_000).unref()); // one for all pages
    return restarting;
  };
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterEach(async ({ task }) => {
    // What a failed journey looked like at its end.
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
  const it: Pages = {
    page: async (options = {}) => {
      const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(PATIENCE_MS); // also of tabs and popups
      await context.addInitScript(waitLonger);
      await context.addInitScript(keepShifts);
      const page = await context.newPage();
      pages.push(page);
      void keepDrawing(page, restart);
      page.on('pageerror', (error) => errors.push(error.message));
      page.on('console', (message) => {
        if (/Content Security Policy|Refused to/.test(message.text())) errors.push(message.text());
      });
      return page;
    },
  };
  return it;
}

/** Signs in and comes back to a page: as a demo account by its first part, or as a given person. */
export async function signIn(page: Page, { url }: { url: string }, who: string | Person, next = '/'): Promise<void> {
  const { account, password } = typeof who === 'string' ? demoPerson(who) : who;
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

/** The big button in one of its states. */
export const button = (page: Page, kind: string) => page.locator(`[data-button="${kind}"]`);

/** Makes the captcha a picture, as a buyer who chose so on an earlier visit. */
export const preferPictures = (page: Page): Promise<void> => page.evaluate(() => localStorage.setItem('captcha', 'picture'));

/** Lets the browser answer the captcha: it does so by itself, unless the buyer prefers pictures and has to choose it in the dialog. */
export async function checkByBrowser(page: Page): Promise<void> {
  if (await page.evaluate(() => localStorage.getItem('captcha') !== 'picture')) return;
  await page.getByRole('dialog').getByRole('button', { name: /Verify automatically|免输入验证/ }).click();
}

/** Buys on an open sale page, up to the order. */
export async function buy(page: Page): Promise<void> {
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
}

/** Opens the bank's page and presses one of its buttons. */
export async function atTheBank(page: Page, act: string): Promise<void> {
  const opened = page.waitForEvent('popup');
  await page.getByRole('link', { name: 'Open the payment page' }).click();
  const bank = await opened;
  await bank.getByRole('button', { name: act, exact: true }).click();
  await bank.getByRole('status').waitFor();
  await bank.close();
}

/** The mark that says how an order stands. */
export const status = (page: Page, text: string) => page.locator('main .chip', { hasText: text });

/** The mark that says how live data comes in. */
export const pill = (page: Page, state: string) => page.locator(`[data-line="${state}"]`);

/** What is left of the chosen item, as the page shows it. */
export const stock = async (page: Page): Promise<number> => Number(await page.locator('[data-stock]').first().getAttribute('data-stock'));

/** Waits until the page shows less stock than before. */
export async function stockMoves(page: Page, before: number): Promise<void> {
  await page.waitForFunction((was) => Number(document.querySelector('[data-stock]')?.getAttribute('data-stock')) < was, before);
}

/** The keys under which the page places orders: a request that is sent again has the same one. */
export function keysOfOrders(page: Page): Set<string> {
  const keys = new Set<string>();
  page.on('request', (request) => {
    const body = request.url().endsWith('/graphql') && request.method() === 'POST' ? request.postDataJSON() : null;
    if (body?.operationName === 'PlaceOrder') keys.add(body.variables.input.idempotencyKey);
  });
  return keys;
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
