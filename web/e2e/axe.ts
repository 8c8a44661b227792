/** What is wrong with a screen, by axe and by its width, in both themes and both languages. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const wide = { width: 1280, height: 860 };
const narrow = { width: 320, height: 700 };

/**
 * How a screen is looked at: each language on a phone and on a wide screen. axe takes a second for a screen, and checks
 * each theme, each language and each size once.
 */
const looks = [
  { language: 'en', colorScheme: 'light', size: wide, axe: true },
  { language: 'en', colorScheme: 'dark', size: narrow, axe: false },
  { language: 'zh', colorScheme: 'dark', size: narrow, axe: true },
  { language: 'zh', colorScheme: 'light', size: wide, axe: false },
] as const;

/** Where the pictures of a screen go, for a person to look at; nowhere unless SCREENS is set. */
function pictureOf(name: string): string | null {
  if (!process.env['SCREENS']) return null;
  const folder = join(import.meta.dirname, '../screens');
  mkdirSync(folder, { recursive: true });
  return join(folder, name);
}

/** What axe finds wrong, in one line each; under an open sheet, which nothing but itself can be reached through, it looks at the sheet alone. */
async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource);
  const results = (await page.evaluate('axe.run(document.querySelector("dialog[open]") ?? document, { resultTypes: ["violations"] })')) as AxeResults;
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}

/** Elements that are described or named by something that is not there. axe leaves that to people. */
const dangling = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    ['aria-describedby', 'aria-labelledby'].flatMap((name) =>
      [...document.querySelectorAll(`[${name}]`)]
        .filter((element) => element.getAttribute(name)!.split(' ').some((id) => !document.getElementById(id)))
        .map((element) => `${name} of nothing: ${element.outerHTML.slice(0, 120)}`),
    ),
  );

/** Waits until the browser has drawn what changed. */
const drawn = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** What still moves after it was drawn: pages of journeys want less motion. */
const moving = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    document
      .getAnimations()
      .filter(({ playState }) => playState === 'running')
      .map(({ effect }) => `moves: ${(effect as KeyframeEffect).target?.outerHTML.slice(0, 120)}`),
  );

/** Changes the language, also under an open sheet, where no pointer reaches the switch. */
async function speak(page: Page, language: string): Promise<void> {
  if ((await page.locator('html').getAttribute('lang'))!.startsWith(language)) return;
  await page.evaluate(() => document.querySelector<HTMLElement>('header button[lang]')!.click());
  await page.locator(`html[lang^="${language}"]`).waitFor({ state: 'attached' });
}

/** Sizes, and a size of text, at which the status of a buyer is seen without scrolling. */
const sheets = [
  { width: 360, height: 640, text: '100%' },
  { width: 390, height: 844, text: '100%' },
  { width: 1280, height: 900, text: '100%' },
  { width: 360, height: 640, text: '200%' },
  { width: 640, height: 360, text: '100%' },
];

/** What of the status sheet, where the screen has one, is outside the window: its words, its time, its button. */
async function outside(page: Page, picture: string | null = null): Promise<string[]> {
  const sheet = page.locator('section.sheet');
  if (!new URL(page.url()).pathname.startsWith('/s/')) return []; // the preview of a review is part of a longer page
  if (!(await sheet.count()) || (await page.locator('dialog').count())) return [];
  const found: string[] = [];
  for (const { width, height, text } of sheets) {
    await page.setViewportSize({ width, height });
    await page.evaluate((size) => (scrollTo(0, 0), (document.documentElement.style.fontSize = size)), text);
    await drawn(page);
    if (picture) await page.screenshot({ path: `${picture}-${width}x${height}-${text.slice(0, -1)}.png` });
    const hidden = await sheet.evaluate((it) =>
      [...it.querySelectorAll('p, .numeral, button.btn-big')]
        .filter((part) => {
          const { top, bottom, left, right } = part.getBoundingClientRect();
          return top < 0 || left < 0 || bottom > innerHeight + 1 || right > innerWidth + 1;
        })
        .map((part) => part.textContent),
    );
    for (const part of hidden) found.push(`${width} × ${height} px, text of ${text}: “${part}” is outside the window`);
  }
  await page.evaluate(() => document.documentElement.style.removeProperty('font-size'));
  return found;
}

/** The faults of the screen that is open, one line each; the page is left in the language that it was in. */
async function faults(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  const picture = pictureOf(name);
  const before = (await page.locator('html').getAttribute('lang'))!.slice(0, 2);
  for (const { language, colorScheme, size, axe } of looks) {
    await speak(page, language);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page.locator('[data-toast]').waitFor({ state: 'detached' }); // it lies over what is to be looked at
    await drawn(page);
    if (picture) await page.screenshot({ path: `${picture}-${language}-${colorScheme}.png`, fullPage: !(await page.locator('dialog').count()) });
    const how = `${name}: ${language}, ${colorScheme}, ${size.width} px`;
    // What is wrong for a moment, as while the browser mixes the colours of two themes, no user sees.
    const passing = async (): Promise<string[]> => [...(axe ? await violations(page) : []), ...(await moving(page))];
    let wrong = await passing();
    if (wrong.length) {
      await drawn(page);
      wrong = await passing();
    }
    wrong.push(...(await dangling(page)));
    wrong.push(...(await outside(page, picture && `${picture}-${language}-${colorScheme}`)));
    await page.setViewportSize(size);
    for (const fault of wrong) found.push(`${how}: ${fault}`);
    const over = await page.evaluate(() => {
      const boxes = [document.documentElement, ...document.querySelectorAll('dialog')];
      return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
    });
    if (over > 0) found.push(`${how}: ${over} px too wide`);
  }
  await speak(page, before);
  return found;
}

/** Looks at the screen that is open: it has no faults. */
export async function look(page: Page, name: string): Promise<void> {
  expect(await faults(page, name)).toEqual([]);
}

/** Nothing has moved since the page was loaded, and all that it asked for is there. */
export async function stood(page: Page, name: string): Promise<void> {
  await page.waitForLoadState('networkidle');
  await drawn(page);
  expect(await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts.splice(0)), `layout shifts of ${name}`).toEqual([]);
}

/** Looks at the status sheet alone: it is seen without scrolling, at each size. */
export async function fits(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!;
  expect(await outside(page), name).toEqual([]);
  await page.setViewportSize(size);
}
