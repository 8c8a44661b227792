/** Checks screens in both languages and colour schemes: accessibility (axe), horizontal overflow, clipped content. */
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
 * Variants in which a screen is checked: each language on a phone and on a wide screen. A run of axe takes a second, so it
 * covers each colour scheme, each language and each size only once.
 */
const variants = [
  { language: 'en', colorScheme: 'light', size: wide, axe: true },
  { language: 'en', colorScheme: 'dark', size: narrow, axe: false },
  { language: 'zh', colorScheme: 'dark', size: narrow, axe: true },
  { language: 'zh', colorScheme: 'light', size: wide, axe: false },
] as const;

/** Returns the path prefix of a screen's screenshots; null unless SCREENS is set. */
function pictureOf(name: string): string | null {
  if (!process.env['SCREENS']) return null;
  const folder = join(import.meta.dirname, '../screens');
  mkdirSync(folder, { recursive: true });
  return join(folder, name);
}

/** Returns one line per axe violation. While a dialog is open, only the dialog is checked: the rest of the page is inert. */
export async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource);
  const results = (await page.evaluate('axe.run(document.querySelector("dialog[open]") ?? document, { resultTypes: ["violations"] })')) as AxeResults;
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}

/** Returns elements whose aria-describedby or aria-labelledby names a missing id. axe only marks these for manual review. */
const danglingReferences = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    ['aria-describedby', 'aria-labelledby'].flatMap((name) =>
      [...document.querySelectorAll(`[${name}]`)]
        .filter((element) => element.getAttribute(name)!.split(' ').some((id) => !document.getElementById(id)))
        .map((element) => `${name} of nothing: ${element.outerHTML.slice(0, 120)}`),
    ),
  );

/** Waits two animation frames, so that pending changes are painted. */
const nextPaint = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Returns the animations that still run. There should be none: the pages of these tests prefer reduced motion. */
const runningAnimations = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    document
      .getAnimations()
      .filter(({ playState }) => playState === 'running')
      .map(({ effect }) => `moves: ${(effect as KeyframeEffect).target?.outerHTML.slice(0, 120)}`),
  );

/** Changes the language by script, because a click cannot reach the switch while a dialog is open. */
async function setLanguage(page: Page, language: string): Promise<void> {
  if ((await page.locator('html').getAttribute('lang'))!.startsWith(language)) return;
  await page.evaluate(() => document.querySelector<HTMLElement>('header button[lang]')!.click());
  await page.locator(`html[lang^="${language}"]`).waitFor({ state: 'attached' });
}

/** Viewport and text sizes at which a buyer's status must be visible without scrolling. */
const viewports = [
  { width: 360, height: 640, text: '100%' },
  { width: 390, height: 844, text: '100%' },
  { width: 1280, height: 900, text: '100%' },
  { width: 360, height: 640, text: '200%' },
  { width: 640, height: 360, text: '100%' },
];

/** Returns the parts of the status sheet (texts, countdown, button) that are outside the viewport; none on a page without the sheet. */
async function clippedParts(page: Page, picture: string | null = null): Promise<string[]> {
  const sheet = page.locator('section.sheet');
  if (!new URL(page.url()).pathname.startsWith('/s/')) return []; // the preview of a review is part of a longer page
  if (!(await sheet.count()) || (await page.locator('dialog').count())) return [];
  const found: string[] = [];
  for (const { width, height, text } of viewports) {
    await page.setViewportSize({ width, height });
    await page.evaluate((size) => (scrollTo(0, 0), (document.documentElement.style.fontSize = size)), text);
    await nextPaint(page);
    if (picture) await page.screenshot({ path: `${picture}-${width}x${height}-${text.slice(0, -1)}.png` });
    const hidden = await sheet.evaluate((it) =>
      [...it.querySelectorAll('p, .numeral, button.btn-big')]
        .filter((part) => {
          if (part.clientWidth <= 1) return false; // for screen readers only
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

/** Returns one line per issue of the current screen. The language of the page is restored. */
async function screenIssues(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  const picture = pictureOf(name);
  const before = (await page.locator('html').getAttribute('lang'))!.slice(0, 2);
  for (const { language, colorScheme, size, axe } of variants) {
    await setLanguage(page, language);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page.locator('[data-toast]').waitFor({ state: 'detached' }); // it covers content
    await nextPaint(page);
    if (picture) await page.screenshot({ path: `${picture}-${language}-${colorScheme}.png`, fullPage: !(await page.locator('dialog').count()) });
    const how = `${name}: ${language}, ${colorScheme}, ${size.width} px`;
    // An issue can be transient, for example while colours change between schemes: check again after a paint.
    const transientIssues = async (): Promise<string[]> => [...(axe ? await violations(page) : []), ...(await runningAnimations(page))];
    let wrong = await transientIssues();
    if (wrong.length) {
      await nextPaint(page);
      wrong = await transientIssues();
    }
    wrong.push(...(await danglingReferences(page)));
    wrong.push(...(await clippedParts(page, picture && `${picture}-${language}-${colorScheme}`)));
    await page.setViewportSize(size);
    for (const fault of wrong) found.push(`${how}: ${fault}`);
    const over = await page.evaluate(() => {
      const boxes = [document.documentElement, ...document.querySelectorAll('dialog')];
      return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
    });
    if (over > 0) found.push(`${how}: ${over} px too wide`);
  }
  await setLanguage(page, before);
  return found;
}

/** Fails if the current screen has issues. */
export async function checkScreen(page: Page, name: string): Promise<void> {
  expect(await screenIssues(page, name)).toEqual([]);
}

/** Waits until the network is idle and fails if content has shifted since the last call. */
export async function expectNoLayoutShifts(page: Page, name: string): Promise<void> {
  await page.waitForLoadState('networkidle');
  await nextPaint(page);
  expect(await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts.splice(0)), `layout shifts of ${name}`).toEqual([]);
}

/** The sum of the layout shifts of a page without recent input, since it was opened. */
export async function shiftsOf(page: Page): Promise<number> {
  const shifts = await page.evaluate(() => (window as unknown as { shifts: string[] }).shifts);
  if (shifts.length) console.error(shifts.join('\n'));
  return shifts.reduce((sum, shift) => sum + parseFloat(shift), 0);
}

/** Fails if a part of the status sheet needs scrolling at one of the sizes. */
export async function expectStatusVisible(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!;
  expect(await clippedParts(page), name).toEqual([]);
  await page.setViewportSize(size);
}
