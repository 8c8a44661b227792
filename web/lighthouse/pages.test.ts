/**
 * Lighthouse (mobile, its own throttling) on every screen: accessibility, best
 * practices and SEO must be 100, nothing may move, and performance must be 98 in
 * the best of a few runs, for a busy machine only ever takes from it. Where
 * Lighthouse finds the machine too slow for a verdict, a failure says so.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { endSale, openSales, scheduleSales } from '../e2e/api';
import { browserPath, button, buy, browserFlags, signIn, startDemo, type Demo } from '../e2e/shop';

const CATEGORIES = ['performance', 'accessibility', 'best-practices', 'seo'];
const LEAST: Record<string, number> = { performance: 98, accessibility: 100, 'best-practices': 100, seo: 100 };
/** Most runs of a page; LIGHTHOUSE_RUNS=1 measures each page once. */
const RUNS = Number(process.env['LIGHTHOUSE_RUNS'] ?? 5);
/** Lighthouse warns of machines whose benchmark is below this. */
const SLOW = 1_000;
/** Figures that are printed beside the scores. */
const METRICS = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'speed-index', 'cumulative-layout-shift'];

let demo: Demo;
let browser: BrowserContext;
let port: number;
const profile = mkdtempSync(join(tmpdir(), 'lighthouse-'));
/** Addresses that are known once the demo runs. */
const found = { soon: '', over: '', order: '', adminSale: '' };

/** The port that the browser chose for its debugger, as it writes it to its profile. */
function debuggerPort(): number {
  const file = join(profile, 'DevToolsActivePort');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
}

beforeAll(async () => {
  demo = await startDemo({ SECKILL_LIMITS: 'off' });
  const args = [...browserFlags, '--remote-debugging-port=0'];
  browser = await chromium.launchPersistentContext(profile, { executablePath: browserPath(), args, locale: 'en-GB' });
  port = await vi.waitUntil(debuggerPort, { timeout: 120_000 });
  const price = { currencyCode: 'CNY', price: '10.00', listPrice: '20.00' };
  [found.soon = ''] = await scheduleSales(demo, [{ title: 'Tomorrow', ...price }], 3_600_000);
  [found.over = ''] = await openSales(demo, [{ title: 'Yesterday', ...price }]);
  await endSale(demo, found.over, 'Enough for today.');
});
afterAll(async () => {
  await browser?.close();
  await demo?.stop();
  rmSync(profile, { recursive: true, force: true });
});

/** What Lighthouse says of a page. */
interface Verdict {
  /** By category, in percent. */
  scores: Record<string, number>;
  /** What keeps a category from 100 percent. */
  failed: string[];
  /** By name: ms, or a score of layout shifts. */
  metrics: Record<string, number>;
  /** How fast the machine was meanwhile. */
  benchmark: number;
}

interface Audit {
  id: string;
  score: number | null;
  scoreDisplayMode: string;
  numericValue?: number;
}

async function audit(url: string, categories: string[]): Promise<Verdict> {
  const { default: lighthouse } = await import('lighthouse');
  const { lhr } = (await lighthouse(url, { port, logLevel: 'error', disableStorageReset: true, onlyCategories: categories }))!;
  const scores = Object.entries(lhr.categories) as [string, { score: number }][];
  const audits = lhr.audits as Record<string, Audit>;
  return {
    scores: Object.fromEntries(scores.map(([name, { score }]) => [name, Math.round(score * 100)])),
    failed: Object.values(audits).flatMap(({ id, score, scoreDisplayMode }) => (scoreDisplayMode === 'error' || (scoreDisplayMode === 'binary' && score === 0) ? [id] : [])),
    metrics: Object.fromEntries(METRICS.map((name) => [name, audits[name]?.numericValue ?? NaN])),
    benchmark: lhr.environment.benchmarkIndex,
  };
}

/** Fails unless the page has the scores that it must have. */
async function check(name: string, url: string): Promise<void> {
  let best = await audit(url, CATEGORIES);
  for (let run = 1; run < RUNS && best.scores['performance']! < LEAST['performance']!; run++) {
    const again = await audit(url, ['performance']);
    if (again.scores['performance']! < best.scores['performance']!) continue;
    best = { ...again, scores: { ...best.scores, ...again.scores }, failed: best.failed };
  }
  const { scores, failed, metrics, benchmark } = best;
  const figures = METRICS.map((each) => `${each} ${metrics[each]!.toFixed(each.startsWith('cumulative') ? 4 : 0)}`).join(', ');
  console.log(`lighthouse, ${name}: ${CATEGORIES.map((each) => scores[each]).join('/')}, ${figures}, benchmark of the machine ${benchmark}, failed: ${failed.join(', ') || 'none'}`);
  const slow = benchmark < SLOW ? `, and Lighthouse calls a machine of ${benchmark} too slow for a verdict` : '';
  expect(metrics['cumulative-layout-shift'], 'layout shifts').toBe(0);
  for (const each of CATEGORIES) expect(scores[each], each + slow).toBeGreaterThanOrEqual(LEAST[each]!);
}

test.each<[string, () => string]>([
  ['list', () => '/'],
  ['sale while it is open', () => `/s/${demo.open.slug}`],
  ['sale before its opening', () => `/s/${found.soon}`],
  ['sale after its end', () => `/s/${found.over}`],
  ['sign-in', () => '/sign-in'],
  ['register', () => '/register'],
])('signed out: %s', (name, path) => check(name, demo.url + path()));

/** Signs in with another account. */
async function as(who: string, next: string): Promise<void> {
  await browser.clearCookies();
  const page = await browser.newPage();
  await page.goto(`${demo.url}/robots.txt`);
  await page.evaluate(() => localStorage.clear());
  await signIn(page, demo, who, next);
  if (who === 'alice') {
    await buy(page);
    await button(page, 'pay').click();
    await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
    found.order = new URL(page.url()).pathname;
  } else {
    await page.getByRole('link', { name: demo.open.title }).click();
    await page.locator('#figures').waitFor();
    found.adminSale = new URL(page.url()).pathname;
  }
  await page.close();
}

test('a buyer signs in', () => as('alice', `/s/${demo.open.slug}`));

test.each<[string, () => string]>([
  ['sale with an order', () => `/s/${demo.open.slug}`],
  ['order', () => found.order],
  ['orders', () => '/orders'],
  ['account', () => '/account'],
])('a buyer: %s', (name, path) => check(name, demo.url + path()));

test('an administrator signs in', () => as('admin', '/operate'));

test.each<[string, () => string]>([
  ['home', () => '/operate'],
  ['live page', () => found.adminSale],
  ['sales', () => '/operate/sales'],
  ['new sale', () => '/operate/new'],
  ['orders', () => '/operate/orders'],
  ['catalogue', () => '/operate/goods'],
  ['inbox', () => '/operate/inbox'],
  ['refunds', () => '/operate/refunds'],
  ['people', () => '/operate/people'],
  ['webhooks', () => '/operate/webhooks'],
])('an administrator: %s', (name, path) => check(name, demo.url + path()));
