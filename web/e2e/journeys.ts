/** Tests that run in more than one environment. Each test file registers them for one. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { checkScreen } from './axe';
import { clickAtBank, button, buy, checkByBrowser, fillSignIn, recordOrderKeys, pill, preferPictures, recordOperations, signIn, status, stock, stockMoves, type BrowserFixture } from './shop';
import { operatorJourney } from './admin';
import type { SiteEnvironment, TestSale, Environment } from './environment';

/** Signs in as one of the buyers, opens the sale and chooses the item. */
async function visit(page: Page, sale: TestSale, n = 0): Promise<void> {
  await signIn(page, sale, sale.buyers[n]!, `/s/${sale.slug}`);
  await choose(page, sale);
}

async function choose(page: Page, { item }: TestSale): Promise<void> {
  if (item) await page.getByRole('radio', { name: item }).check();
}

/** Opens the page of the order that was just created. */
async function toOrder(page: Page): Promise<void> {
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
}

/** Controls the connection of a page: muted, it passes no events but stays open; disconnected, all requests fail. */
async function controlConnection(page: Page): Promise<{ mute(): void; disconnect(): Promise<void>; restore(): void }> {
  let state: 'connected' | 'muted' | 'disconnected' = 'connected';
  const open = new Set<{ close(options: { code: number }): Promise<void> }>();
  await page.routeWebSocket('**/graphql', (socket) => {
    if (state === 'disconnected') return void socket.close({ code: 1013 });
    const server = socket.connectToServer();
    const keepsAlive = (message: string | Buffer): boolean => ['connection_ack', 'ping', 'pong'].includes(JSON.parse(String(message)).type);
    server.onMessage((message) => (state === 'connected' || (state === 'muted' && keepsAlive(message))) && socket.send(message));
    open.add(socket);
  });
  await page.route('**/graphql', (route) => (state === 'disconnected' ? route.abort() : route.continue()));
  return {
    mute: () => void (state = 'muted'),
    disconnect: async () => {
      state = 'disconnected';
      for (const socket of open) await socket.close({ code: 1013 });
      open.clear();
    },
    restore: () => void (state = 'connected'),
  };
}

function disconnectInQueue(it: BrowserFixture, environment: Environment): void {
  test('a connection lost in the queue costs nothing: the page shows the order after it reconnects', async () => {
    const sale = await environment.sell();
    const page = await it.page();
    const connection = await controlConnection(page);
    await visit(page, sale);
    await pill(page, 'live').waitFor();
    const keys = recordOrderKeys(page);
    connection.mute();
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await button(page, 'queue').waitFor();
    await page.getByText('Reserved for you').waitFor();
    await connection.disconnect();
    await pill(page, 'retrying').waitFor();
    expect(await button(page, 'queue').count()).toBe(1);
    await environment.startWorker();
    connection.restore();
    await button(page, 'pay').waitFor();
    expect(keys.size).toBe(1);
  });
}

function buyAndPay(it: BrowserFixture, environment: Environment): void {
  test('a buyer fails the captcha, then passes it, buys and pays, and a second tab hears of all of it', async () => {
    await environment.startWorker();
    const sale = await environment.sell();
    const page = await it.page();
    await preferPictures(page);
    await page.goto(`${sale.url}/s/${sale.slug}`);
    await button(page, 'sign-in').click();
    await fillSignIn(page, sale.buyers[0]!.account, sale.buyers[0]!.password);
    await page.waitForURL(`${sale.url}/s/${sale.slug}`);
    await choose(page, sale);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await button(other, 'buy').waitFor();

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
    await clickAtBank(page, 'Approve');
    await status(page, 'Paid').waitFor();
    expect(await page.getByRole('img', { name: 'Scan to pay' }).count()).toBe(0);
    await button(other, 'order').waitFor();
    await page.goto(`${sale.url}/orders`);
    await page.locator('main li').first().waitFor();
    expect(await page.locator('main li').count()).toBe(1);
  });
}

function expire(it: BrowserFixture, environment: Environment): void {
  test('an order that is not paid expires on the page, and the buyer may try again', async () => {
    await environment.startWorker();
    const sale = await environment.sell({ single: true, window: '10s' });
    const page = await it.page();
    await visit(page, sale);
    const placed = () =>
      page.waitForResponse((response) => response.url().endsWith('/graphql') && response.request().postDataJSON()?.operationName === 'PlaceOrder');
    const ordered = async (count: number): Promise<void> => {
      await expect.poll(async () => {
        await page.goto(`${sale.url}/orders`);
        await page.locator('main li, main .note').first().waitFor();
        return page.locator('main li').count();
      }).toBe(count);
    };
    // A slow page may show the order only after it has expired.
    const first = placed();
    await button(page, 'buy').click();
    await checkByBrowser(page);
    await first;
    await ordered(1);
    await page.locator('main li a').first().click();
    await status(page, 'Expired').waitFor();
    if (environment.checksScreens) await checkScreen(page, 'order-expired');
    await page.locator('main dl a').click();
    await choose(page, sale);
    const second = placed();
    await button(page, 'buy').click();
    await second;
    await ordered(2);
  });
}

function soldOutToOffer(it: BrowserFixture, environment: Environment): void {
  test('a buyer who finds it sold out joins the waitlist, is notified of an offer, and buys', async () => {
    await environment.startWorker();
    const sale = await environment.sell({ buyerCount: 3, single: true });
    const [first, second, third] = await Promise.all(
      sale.buyers.map(() => it.page({ permissions: ['notifications'] })),
    );
    await visit(first!, sale);
    await buy(first!);
    for (const [n, page] of [second!, third!].entries()) {
      await visit(page, sale, n + 1);
      await button(page, 'waitlist').waitFor();
      if (n && environment.checksScreens) await checkScreen(page, 'sold-out');
      await button(page, 'waitlist').click();
      await button(page, 'waiting').waitFor();
    }
    await second!.getByText('You are next on the waitlist').waitFor();
    await third!.getByText('1 ahead of you on the waitlist').waitFor();
    if (environment.checksScreens) await checkScreen(third!, 'waitlist');

    await toOrder(first!);
    await first!.getByRole('button', { name: 'Cancel order', exact: true }).click();
    await first!.getByRole('button', { name: 'Yes, cancel' }).click();
    await second!.getByText('Reserved for you').first().waitFor();
    await second!.getByText('Buy before the time runs out').waitFor();
    if (environment.checksScreens) await checkScreen(second!, 'offer');
    const names = recordOperations(second!);
    const keys = recordOrderKeys(second!);
    await button(second!, 'buy').click();
    await second!.getByText('You got it!').waitFor(); // no captcha, no path: the offer is the way in
    expect(keys.size).toBe(1);
    expect(names).not.toContain('CreateCaptcha');
    await third!.getByRole('button', { name: 'Leave the waitlist' }).click();
    await button(third!, 'waitlist').waitFor();
  });
}

function tokenExpiry(it: BrowserFixture, environment: Environment): void {
  test('when the token expires the server closes the connection, and the page continues with a new one', async () => {
    await environment.startWorker();
    const sale = await environment.sell({ settings: { SECKILL_ACCESS_TOKEN_TTL: '30s' } });
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
    await visit(page, sale);
    await pill(page, 'live').waitFor();
    const names = recordOperations(page);
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

/** Registers the tests that depend on orders, payments, waitlist and expiry, and so on the environment. */
export function serverJourneys(it: BrowserFixture, environment: Environment): void {
  buyAndPay(it, environment);
  soldOutToOffer(it, environment);
  expire(it, environment);
}

/** Registers all tests. The lost connection comes first, because it needs orders to wait: no worker runs yet. */
export function journeys(it: BrowserFixture, environment: SiteEnvironment): void {
  disconnectInQueue(it, environment);
  serverJourneys(it, environment);
  tokenExpiry(it, environment);
  operatorJourney(it, environment);
}
