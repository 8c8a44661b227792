/** The journeys that hold in each place where the shop runs. Each test file sends them through one venue. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { look } from './axe';
import { atTheBank, button, buy, checkByBrowser, fillSignIn, keysOfOrders, pill, preferPictures, sent, signIn, status, stock, stockMoves, type Pages } from './shop';
import { operatorJourney } from './admin';
import type { SiteVenue, Stand, Venue } from './venue';

/** Opens the sale as one of its people, with the item that is to be bought chosen. */
async function visit(page: Page, stand: Stand, n = 0): Promise<void> {
  await signIn(page, stand, stand.people[n]!, `/s/${stand.slug}`);
  await choose(page, stand);
}

async function choose(page: Page, { item }: Stand): Promise<void> {
  if (item) await page.getByRole('radio', { name: item }).check();
}

/** Goes from the order in hand to its page. */
async function toOrder(page: Page): Promise<void> {
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
}

/** A line that can be held, so that no news comes through it, and cut, so that nothing does. */
async function wire(page: Page): Promise<{ hold(): void; cut(): Promise<void>; mend(): void }> {
  let state: 'whole' | 'held' | 'cut' = 'whole';
  const open = new Set<{ close(options: { code: number }): Promise<void> }>();
  await page.routeWebSocket('**/graphql', (socket) => {
    if (state === 'cut') return void socket.close({ code: 1013 });
    const server = socket.connectToServer();
    const keepsAlive = (message: string | Buffer): boolean => ['connection_ack', 'ping', 'pong'].includes(JSON.parse(String(message)).type);
    server.onMessage((message) => (state === 'whole' || (state === 'held' && keepsAlive(message))) && socket.send(message));
    open.add(socket);
  });
  await page.route('**/graphql', (route) => (state === 'cut' ? route.abort() : route.continue()));
  return {
    hold: () => void (state = 'held'),
    cut: async () => {
      state = 'cut';
      for (const socket of open) await socket.close({ code: 1013 });
      open.clear();
    },
    mend: () => void (state = 'whole'),
  };
}

function cutInMidQueue(it: Pages, venue: Venue): void {
  test('a line that is cut in mid-queue costs nothing: the order is heard of when it is back', async () => {
    const stand = await venue.sell();
    const page = await it.page();
    const line = await wire(page);
    await visit(page, stand);
    await pill(page, 'live').waitFor();
    const keys = keysOfOrders(page);
    line.hold();
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await button(page, 'queue').waitFor();
    await page.getByText('Reserved for you').waitFor();
    await line.cut();
    await pill(page, 'retrying').waitFor();
    expect(await button(page, 'queue').count()).toBe(1);
    await venue.startWorker();
    line.mend();
    await button(page, 'pay').waitFor();
    expect(keys.size).toBe(1);
  });
}

function buyAndPay(it: Pages, venue: Venue): void {
  test('a buyer fails the captcha, then passes it, buys and pays, and a second tab hears of all of it', async () => {
    await venue.startWorker();
    const stand = await venue.sell();
    const page = await it.page();
    await page.goto(`${stand.url}/s/${stand.slug}`);
    await button(page, 'sign-in').click();
    await fillSignIn(page, stand.people[0]!.account, stand.people[0]!.password);
    await page.waitForURL(`${stand.url}/s/${stand.slug}`);
    await choose(page, stand);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await button(other, 'buy').waitFor();

    await preferPictures(page);
    await button(page, 'buy').click();
    const sheet = page.getByRole('dialog');
    const answer = sheet.getByLabel('Your answer');
    await answer.fill('wrong');
    await sheet.getByRole('button', { name: 'Verify', exact: true }).click();
    await sheet.getByText('That was not right').waitFor();
    expect(await answer.inputValue()).toBe('');
    await checkByBrowser(page);
    await page.getByText('You got it!').waitFor();
    await button(other, 'pay').waitFor();

    await toOrder(page);
    expect(await page.locator('main').innerText()).toContain('Awaiting payment');
    await page.getByRole('img', { name: 'Scan to pay' }).waitFor();
    await atTheBank(page, 'Approve');
    await status(page, 'Paid').waitFor();
    expect(await page.getByRole('img', { name: 'Scan to pay' }).count()).toBe(0);
    await button(other, 'order').waitFor();
    await page.goto(`${stand.url}/orders`);
    await page.locator('main li').first().waitFor();
    expect(await page.locator('main li').count()).toBe(1);
  });
}

function expire(it: Pages, venue: Venue): void {
  test('an order that is not paid expires on the page, and the buyer may try again', async () => {
    await venue.startWorker();
    const stand = await venue.sell({ single: true, window: '10s' });
    const page = await it.page();
    await visit(page, stand);
    const ordered = async (count: number): Promise<void> => {
      await page.waitForResponse((response) => response.url().endsWith('/graphql') && response.request().postDataJSON()?.operationName === 'PlaceOrder');
      await expect.poll(async () => {
        await page.goto(`${stand.url}/orders`);
        await page.locator('main li, main .note').first().waitFor();
        return page.locator('main li').count();
      }).toBe(count);
    };
    // A slow page may show the order only after it has expired.
    const first = ordered(1);
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await first;
    await page.locator('main li a').first().click();
    await status(page, 'Expired').waitFor();
    if (venue.looks) await look(page, 'order-expired');
    await page.locator('main dl a').click();
    await choose(page, stand);
    const second = ordered(2);
    await button(page, 'buy').click();
    await second;
  });
}

function soldOutToOffer(it: Pages, venue: Venue): void {
  test('a buyer who finds it sold out joins the waitlist, is notified of an offer, and buys', async () => {
    await venue.startWorker();
    const stand = await venue.sell({ people: 3, single: true });
    const [first, second, third] = await Promise.all(
      stand.people.map(() => it.page({ permissions: ['notifications'] })),
    );
    await visit(first!, stand);
    await buy(first!);
    for (const [n, page] of [second!, third!].entries()) {
      await visit(page, stand, n + 1);
      await button(page, 'waitlist').waitFor();
      if (n && venue.looks) await look(page, 'sold-out');
      await button(page, 'waitlist').click();
      await button(page, 'waiting').waitFor();
    }
    await second!.getByText('You are next on the waitlist').waitFor();
    await third!.getByText('1 ahead of you on the waitlist').waitFor();
    if (venue.looks) await look(third!, 'waitlist');

    await toOrder(first!);
    await first!.getByRole('button', { name: 'Cancel order', exact: true }).click();
    await first!.getByRole('button', { name: 'Yes, cancel' }).click();
    await second!.getByText('Reserved for you').first().waitFor();
    await second!.getByText('Buy before the time runs out').waitFor();
    if (venue.looks) await look(second!, 'offer');
    const names = sent(second!);
    const keys = keysOfOrders(second!);
    await button(second!, 'buy').click();
    await second!.getByText('You got it!').waitFor(); // no captcha, no path: the offer is the way in
    expect(keys.size).toBe(1);
    expect(names).not.toContain('CreateCaptcha');
    await third!.getByRole('button', { name: 'Leave the waitlist' }).click();
    await button(third!, 'waitlist').waitFor();
  });
}

function tokenExpiry(it: Pages, venue: Venue): void {
  test('when the token expires the server closes the connection, and the page continues with a new one', async () => {
    await venue.startWorker();
    const stand = await venue.sell({ settings: { SECKILL_ACCESS_TOKEN_TTL: '30s' } });
    const page = await it.page();
    const inits: string[] = [];
    const closed: (number | undefined)[] = [];
    await page.routeWebSocket('**/graphql', (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((message) => {
        if (String(message).includes('connection_init')) inits.push(String(message));
        server.send(message);
      });
      server.onClose((code, reason) => {
        closed.push(code);
        void socket.close({ code: code ?? 1000, reason: reason ?? '' });
      });
    });
    await visit(page, stand);
    await pill(page, 'live').waitFor();
    const names = sent(page);
    const before = await stock(page);
    const so = inits.length;
    await expect.poll(() => closed, { timeout: 120_000 }).toContain(4403);
    await expect.poll(() => inits.length, { timeout: 120_000 }).toBeGreaterThan(so);
    expect(inits.at(-1)).not.toBe(inits[so - 1]);
    expect(names).toContain('RefreshSession');
    await pill(page, 'live').waitFor();
    await buy(page);
    await stockMoves(page, before);
    expect(await page.getByRole('link', { name: 'Sign in' }).count()).toBe(0);
  });
}

/** Registers the journeys that need the order, payment, waitlist and expiry of the server, in each place. */
export function serverJourneys(it: Pages, venue: Venue): void {
  buyAndPay(it, venue);
  soldOutToOffer(it, venue);
  expire(it, venue);
}

/** Registers all journeys. The cut in mid-queue comes first: until the worker is started, orders wait. */
export function journeys(it: Pages, venue: SiteVenue): void {
  cutInMidQueue(it, venue);
  serverJourneys(it, venue);
  tokenExpiry(it, venue);
  operatorJourney(it, venue);
}
