/**
 * Lighthouse (mobile, its own throttling) on the list, a sale and an order:
 * accessibility, best practices and SEO must be 100, and performance 98 in the
 * best of a few runs, for a busy machine only ever takes from it. Where
 * Lighthouse finds the machine too slow for a verdict, a failure says so.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { browserPath, button, buy, flags, signIn, startDemo, type Demo } from '../e2e/shop';

const CATEGORIES = ['performance', 'accessibility', 'best-practices', 'seo'];
const LEAST: Record<string, number> = { performance: 98, accessibility: 100, 'best-practices': 100, seo: 100 };
const RUNS = 5;
/** Lighthouse warns of machines whose benchmark is below this. */
const SLOW = 1_000;

let demo: Demo;
let browser: BrowserContext;
let port: number;
const profile = mkdtempSync(join(tmpdir(), 'lighthouse-'));

/** The port that the browser chose for its debugger, as it writes it to its profile. */
function debuggerPort(): number {
  const file = join(profile, 'DevToolsActivePort');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
}

beforeAll(async () => {
  demo = await startDemo();
  const args = [...flags, '--remote-debugging-port=0'];
  browser = await chromium.launchPersistentContext(profile, { executablePath: browserPath(), args, locale: 'en-GB' });
  port = await vi.waitUntil(debuggerPort, { timeout: 120_000 });
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
  /** How fast the machine was meanwhile. */
  benchmark: number;
}

async function audit(url: string, categories: string[]): Promise<Verdict> {
  const { default: lighthouse } = await import('lighthouse');
  const { lhr } = (await lighthouse(url, { port, logLevel: 'error', disableStorageReset: true, onlyCategories: categories }))!;
  const found = Object.entries(lhr.categories) as [string, { score: number }][];
  return {
    scores: Object.fromEntries(found.map(([name, { score }]) => [name, Math.round(score * 100)])),
    benchmark: lhr.environment.benchmarkIndex,
  };
}

/** Fails unless the page has the scores that it must have. */
async function check(name: string, url: string): Promise<void> {
  let { scores, benchmark } = await audit(url, CATEGORIES);
  for (let run = 1; run < RUNS && scores['performance']! < LEAST['performance']!; run++) {
    const again = await audit(url, ['performance']);
    if (again.scores['performance']! < scores['performance']!) continue;
    scores = { ...scores, ...again.scores };
    benchmark = again.benchmark;
  }
  console.log(`lighthouse, ${name}: ${CATEGORIES.map((each) => `${each} ${scores[each]}`).join(', ')} (benchmark of the machine ${benchmark})`);
  const slow = benchmark < SLOW ? `, and Lighthouse calls a machine of ${benchmark} too slow for a verdict` : '';
  for (const each of CATEGORIES) expect(scores[each], each + slow).toBeGreaterThanOrEqual(LEAST[each]!);
}

test('the list', () => check('list', `${demo.url}/`));

test('a sale', () => check('sale', `${demo.url}/s/${demo.open.slug}`));

test('an order', async () => {
  const page = await browser.newPage();
  await signIn(page, demo, 'alice', `/s/${demo.open.slug}`);
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
  const url = page.url();
  await page.close();
  await check('order', url);
});
