/** What is wrong with a screen, by axe and by its width, light and wide, dark and narrow. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const sizes = { light: { width: 1280, height: 860 }, dark: { width: 320, height: 700 } };

/** What axe finds wrong, in one line each. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const results = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as AxeResults;
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
}

/** The faults of the screen that is open, one line each; with a name, its pictures go to files that begin so. */
export async function faults(page: Page, shot: string | null = null): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(sizes[colorScheme]);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    if (shot) await page.screenshot({ path: `${shot}-${colorScheme}.png` });
    for (const violation of await violations(page)) found.push(`${colorScheme}: ${violation}`);
    const wide = await page.evaluate(() => {
      const boxes = [document.documentElement, ...document.querySelectorAll('dialog')];
      return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
    });
    if (wide > 0) found.push(`${colorScheme}: ${wide} px too wide`);
  }
  return found;
}

/** The same in both languages; the page is left in the one that it was in. */
export async function faultsInBoth(page: Page, shot: string | null = null): Promise<string[]> {
  const found: string[] = [];
  for (const language of ['English', '中文']) {
    found.push(...(await faults(page, shot && `${shot}-${language === 'English' ? 'en' : 'zh'}`)).map((fault) => `${language}: ${fault}`));
    await page.locator('header button[lang]').click();
  }
  return found;
}
