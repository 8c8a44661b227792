/** The status sheet in each state: fully visible at each size, accessible, in both languages and colour schemes. */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { approveRefunds, endSale, pauseSale } from './api';
import { checkScreen } from './axe';
import { freezable } from './freeze';
import { clickAtBank, button, buy, checkByBrowser, browserFixture, signIn, status, type Credentials } from './shop';
import { startSite, type Seed, type SeededSale, type Site } from './site';

const it = browserFixture();
let site: Site;
beforeAll(async () => {
  site = await startSite({ SECKILL_PATH_TTL: '118s' }); // long enough for a busy machine; below two minutes the page shows a ring
});
afterAll(() => site?.stop());

const sheet = (page: Page): Locator => page.locator('section.sheet');

/** A sale with buyers. */
const sell = (seed: Partial<Seed> = {}): Promise<SeededSale> => site.seed({ users: 1, stock: 5, ...seed });

/** Opens the page of a sale, signed in if a buyer is given, and returns it with a function that freezes it. */
async function open(sale: SeededSale, who?: Credentials, rewrite?: (text: string) => string): Promise<{ page: Page; freeze(ahead?: number): Promise<void> }> {
  const page = await it.page();
  const freeze = await freezable(page, rewrite);
  if (who) await signIn(page, site, who, `/s/${sale.slug}`);
  else await page.goto(`${site.url}/s/${sale.slug}`);
  await sheet(page).waitFor();
  return { page, freeze };
}

/** Checks the screen and that the sheet stays in the expected state meanwhile. */
async function checkState(page: Page, name: string, words: string | RegExp): Promise<void> {
  await sheet(page).getByText(words).first().waitFor();
  const kind = await sheet(page).getAttribute('data-status');
  await checkScreen(page, `state-${name}`);
  await sheet(page).getByText(words).first().waitFor();
  expect(await sheet(page).getAttribute('data-status')).toBe(kind);
}

/** Joins the draw. */
async function join(page: Page): Promise<void> {
  await button(page, 'join').click();
  await checkByBrowser(page);
  await button(page, 'joined').waitFor();
}

test('while orders wait to be written, a buyer sees how many are ahead, and that it takes longer', async () => {
  const sale = await sell({ users: 3 });
  const onTime = (text: string): string => text.replaceAll('"delayed":true', '"delayed":false'); // after 10 seconds
  const pages = await Promise.all(sale.buyers.map((who, n) => open(sale, who, n === 2 ? onTime : undefined)));
  for (const { page } of pages) {
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await button(page, 'queue').waitFor();
  }
  const [first, , last] = pages;
  await sheet(last!.page).getByText(/[12] ahead of it/).waitFor();
  await last!.freeze();
  await checkState(last!.page, 'queue', /[12] ahead of it/);
  await checkState(first!.page, 'delayed', 'This takes longer than usual.');
  await site.startWorker();
  await button(first!.page, 'pay').waitFor();
});

test('before the opening: signed out, too early for the draw, not joined, joined', async () => {
  const early = await sell({ more: ['--opens-in', '20m'] });
  await checkState((await open(early)).page, 'signed-out-early', 'Sign in before it opens');
  const { page } = await open(early, early.buyers[0]);
  await checkState(page, 'wait', 'Opens in');
  await page.locator('li', { hasText: 'Done: Signed in' }).waitFor();
  await page.locator('li', { hasText: 'Clock matches the shop' }).waitFor();
  const calendar = decodeURIComponent((await page.getByRole('link', { name: 'Add to calendar' }).getAttribute('href'))!);
  const startsAt = await page.locator('main time').first().getAttribute('datetime');
  expect(calendar).toContain(`DTSTART:${new Date(startsAt!).toISOString().replace(/[-:]|\.\d+/g, '')}`);
  const soon = await sell({ users: 2, more: ['--opens-in', '3m'] });
  const [out, joined] = await Promise.all(soon.buyers.map((who) => open(soon, who)));
  await join(joined!.page);
  await Promise.all([out!.freeze(), joined!.freeze()]);
  await checkState(out!.page, 'join', 'Join the draw');
  await checkState(joined!.page, 'joined', 'You are in the draw');
});

test('the last ten seconds, a turn, and the waiting room with a number, a range and a progress', async () => {
  const sale = await sell({ users: 4, stock: 1, more: ['--opens-in', '180s', '--permit-ratio', '1'] });
  const [visitor, out, ...players] = await Promise.all([open(sale), ...sale.buyers.map((who) => open(sale, who))]);
  for (const { page } of players) await join(page);
  const tab = await players[0]!.page.context().newPage();
  const freeze = await freezable(tab);
  await tab.goto(`${site.url}/s/${sale.slug}`);
  await button(tab, 'joined').waitFor();

  const startsAt = Date.parse((await out!.page.locator('main time').first().getAttribute('datetime'))!);
  await Promise.all([visitor!.freeze, out!.freeze, freeze].map((stop) => stop(startsAt - 5_000 - Date.now())));
  const held = players.map(async ({ page, freeze }) => {
    const [turn, ahead, next] = ['Your turn', '1 ahead of you', 'You are next'].map((words) => sheet(page).getByText(words, { exact: true }));
    await turn!.or(ahead!).or(next!).waitFor({ timeout: 300_000 });
    if (await next!.count()) return null;
    await (await turn!.count() ? turn! : sheet(page).getByText(/^\d+ s to|^\d+ min to|Estimating/)).first().waitFor();
    await freeze();
    return page;
  });
  const pages = (await Promise.all(held)).filter((page) => page !== null);
  await checkState(out!.page, 'last-join', 'Get ready');
  await checkState(visitor!.page, 'last-signed-out', 'Get ready');
  await checkState(tab, 'last-joined', 'You are in the draw');
  const seen = new Set<string>();
  for (const page of pages) { // a slow page may see its turn only after that of the one before has passed
    const turn = (await button(page, 'buy').count()) > 0;
    seen.add(turn ? 'turn' : 'room');
    if (turn) expect(await sheet(page).locator('.ring').count()).toBe(1);
    else expect(await sheet(page).getByRole('progressbar').count()).toBe(1);
    await checkState(page, turn ? 'turn' : 'room', turn ? 'Your turn' : '1 ahead of you');
  }
  expect(seen).toEqual(new Set(['turn', 'room']));
});

test('an order near its payment deadline warns; a paid one, and one that is refunded, are named', async () => {
  await site.startWorker();
  const short = await sell();
  const hurried = await open(short, short.buyers[0]);
  await buy(hurried.page);
  await hurried.freeze();
  const [, minutes, seconds] = /(\d+):(\d\d)/.exec(await button(hurried.page, 'pay').innerText())!;
  await hurried.freeze((Number(minutes) * 60 + Number(seconds) - 100) * 1_000);
  await sheet(hurried.page).locator('p.text-warn').waitFor();
  expect(await sheet(hurried.page).locator('p.text-warn').count()).toBe(1);
  await checkState(hurried.page, 'pay-warning', 'You got it!');

  const sale = await sell();
  const { page } = await open(sale, sale.buyers[0]);
  await buy(page);
  await checkState(page, 'pay', 'You got it!');
  await button(page, 'pay').click();
  await clickAtBank(page, 'Approve');
  await status(page, 'Paid').waitFor();
  const order = page.url();
  await page.goto(`${site.url}/s/${sale.slug}`);
  await checkState(page, 'paid', 'Paid');
  await page.goto(order);
  await page.getByRole('button', { name: 'Request refund' }).click();
  await page.getByLabel('Reason').fill('Too heavy');
  await page.getByRole('dialog').getByRole('button', { name: /^Request refund of ¥/ }).click();
  await status(page, 'Refund pending').waitFor();
  await page.goto(`${site.url}/s/${sale.slug}`);
  await checkState(page, 'refunding', 'Refund pending');
  await approveRefunds(site);
  await button(page, 'buy').waitFor(); // the unit can be bought again
});

test('a sale that is paused, ended or cancelled says so, with the words of the shop', async () => {
  const [held, over, off] = await Promise.all([sell(), sell(), sell({ more: ['--opens-in', '20m'] })]);
  const note = 'We are checking the stock with the warehouse and will be back at noon.';
  for (const [sale, act, name, words] of [
    [held, pauseSale, 'paused', 'Paused by the shop'],
    [over, endSale, 'ended', 'This sale has ended'],
    [off, endSale, 'cancelled', 'This sale was cancelled'],
  ] as const) {
    const [visitor, buyer] = await Promise.all([open(sale), open(sale, sale.buyers[0])]);
    await act(site, sale.slug, note);
    await checkState(visitor.page, `${name}-signed-out`, words);
    await checkState(buyer.page, name, words);
    expect(await sheet(buyer.page).innerText()).toContain(note);
  }
});

test('a sold-out sale offers the waitlist, signed in or out', async () => {
  await site.startWorker();
  const sale = await sell({ users: 2, stock: 1 });
  const [first, second, visitor] = [await open(sale, sale.buyers[0]), await open(sale, sale.buyers[1]), await open(sale)];
  await buy(first.page);
  await checkState(second.page, 'waitlist', 'Join the waitlist');
  await checkState(visitor.page, 'sold-out-signed-out', 'Join the waitlist');
});

test('a page that is offline says so in the sheet', async () => {
  const sale = await sell();
  const { page } = await open(sale);
  const speak = page.locator('header button[lang]');
  await speak.click(); // the texts of both languages are in the page before it is cut off
  await page.locator('html[lang^="zh"]').waitFor({ state: 'attached' });
  await speak.click();
  await page.locator('html[lang^="en"]').waitFor({ state: 'attached' });
  await page.context().setOffline(true);
  await checkState(page, 'offline', 'You are offline');
  await page.context().setOffline(false);
  await sheet(page).getByText('You are offline').waitFor({ state: 'detached' });
});
