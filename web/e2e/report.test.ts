import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { act, saleStatus } from './admin';
import { checkScreen } from './axe';
import { buy, signIn, demoFixture } from './shop';

const it = demoFixture();

/** Width between the margins of an A4 sheet, in CSS pixels. */
const PAPER_PX = Math.floor(((210 - 2 * 14) / 25.4) * 96);

/** What does not fit between the margins of the paper. */
const tooWide = (page: Page): Promise<string[]> =>
  page.evaluate((paper) => {
    const root = document.querySelector('.paper')!.shadowRoot!;
    const boxes = [...root.querySelectorAll<HTMLElement>('.scroll, table, svg, h1, p, dl')];
    return boxes
      .filter((box) => box.getBoundingClientRect().width > paper + 1 || (box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0))
      .map((box) => `${box.tagName} ${box.className} ${box.getAttribute('aria-label')}: ${box.scrollWidth} px`);
  }, PAPER_PX);

test('the report is read on the page, compared with an earlier sale, printed and saved, in both languages', async () => {
  const buyer = await it.page();
  await signIn(buyer, it.demo, 'alice', `/s/${it.demo.open.slug}`);
  await buy(buyer);

  const admin = await it.page({ acceptDownloads: true });
  await signIn(admin, it.demo, 'admin', '/operate');
  await admin.getByRole('link', { name: it.demo.open.title }).click();
  await act(admin, 'End sale', { Reason: 'Enough for today.' });
  await saleStatus(admin, 'Ended').waitFor();
  await admin.getByRole('link', { name: 'Report' }).click();
  await admin.getByRole('heading', { level: 1, name: it.demo.open.title }).waitFor();
  await admin.getByText('Everything adds up').waitFor();
  await admin.getByText('Times are those of Europe/Berlin.').waitFor();
  await admin.getByText('Fewer than 20 people tried to buy').waitFor();
  await admin.getByRole('listitem').filter({ hasText: 'Got a unit' }).getByText('100% of the step before').waitFor();
  await checkScreen(admin, 'report');
  for (const folded of ['Figures for engineers', 'What operators and the system did']) await admin.getByText(folded).first().click();
  await admin.getByRole('cell', { name: 'Enough for today.' }).waitFor();
  expect(await admin.locator('.paper svg[role=img]').count()).toBeGreaterThanOrEqual(4);
  await checkScreen(admin, 'report-unfolded');

  await admin.goto(`${it.demo.url}/operate/sales`);
  await admin.getByRole('link', { name: it.demo.soon.title }).click();
  await admin.getByRole('heading', { level: 1, name: it.demo.soon.title }).waitFor();
  await admin.goto(`${admin.url()}/report`);
  await admin.getByLabel('Compare with').selectOption({ label: await admin.locator('option', { hasText: it.demo.open.title }).innerText() });
  const buyers = admin.getByRole('row', { name: 'Buyers' }).first();
  await buyers.waitFor();
  expect(await buyers.getByRole('cell').allInnerTexts()).toEqual(['Buyers', '0', '1']);
  await checkScreen(admin, 'report-compared');

  await admin.getByText('Everything adds up').waitFor(); // in the language that the page was set back to
  const download = admin.waitForEvent('download');
  await admin.getByRole('button', { name: 'Save as a file' }).click();
  const file = await readFile((await (await download).path())!, 'utf8');
  expect(file).toContain('Compared with an earlier sale');
  expect(file).toContain('Times are those of Europe/Berlin.');

  for (const language of ['en', 'zh']) {
    if (language === 'zh') await admin.locator('header button[lang]').click();
    await admin.getByText(language === 'zh' ? '账目一致' : 'Everything adds up').waitFor();
    for (const folded of await admin.locator('.paper summary').all()) await folded.click();
    await admin.setViewportSize({ width: PAPER_PX, height: 1000 });
    await admin.emulateMedia({ media: 'print' });
    expect(await tooWide(admin)).toEqual([]);
    expect(await admin.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
    for (const hidden of ['header', 'nav', 'select', 'button']) expect(await admin.locator(`${hidden}:visible`).count()).toBe(hidden === 'header' ? 1 : 0); // the report has a header of its own
    await admin.emulateMedia({ media: 'screen' });
  }
  await admin.getByRole('heading', { name: '与往期专场对比' }).waitFor();
});
