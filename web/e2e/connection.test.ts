import { expect, test } from 'vitest';
import { expectStatusVisible } from './axe';
import { removePreloadedResponse } from './first';
import { button, buy, pill, recordOperations, signIn, demoFixture, stock, stockMoves } from './shop';

const it = demoFixture();
const sale = (): string => `${it.demo.url}/s/${it.demo.open.slug}`;

/** Another user buys. */
async function buyElsewhere(who: string): Promise<void> {
  const page = await it.page();
  await signIn(page, it.demo, who, `/s/${it.demo.open.slug}`);
  await buy(page);
  await page.context().close();
}

test('after a lost connection the page says so, reconnects by itself and misses no update', async () => {
  const page = await it.page();
  await page.addInitScript(() => {
    const seen: string[] = ((window as unknown as { toasts: string[] }).toasts = []);
    new MutationObserver(() => {
      const text = document.querySelector('p[data-toast], [aria-live].sr-only p')?.textContent;
      if (text && seen.at(-1) !== text) seen.push(text);
    }).observe(document, { childList: true, subtree: true });
  });
  let blocked = false;
  await page.route('**/graphql', (route) => (blocked ? route.abort() : route.continue()));
  const open = new Set<{ close(options: { code: number }): Promise<void> }>();
  await page.routeWebSocket('**/graphql', (socket) => {
    if (blocked) return void socket.close({ code: 1013 });
    socket.connectToServer();
    open.add(socket);
  });
  await page.goto(sale());
  await pill(page, 'live').waitFor();
  const before = await stock(page);
  blocked = true;
  for (const socket of open) await socket.close({ code: 1013 });
  await pill(page, 'retrying').waitFor();
  await expectStatusVisible(page, 'a lost connection');
  expect(await page.locator('main').innerText()).toContain('Morning bargains'); // never a blank page
  await buyElsewhere('alice');
  blocked = false;
  await expect.poll(() => page.evaluate(() => (window as unknown as { toasts: string[] }).toasts)).toContain('Connection restored.');
  await pill(page, 'live').waitFor();
  await stockMoves(page, before);
});

test('where WebSockets are blocked, events come over HTTP', async () => {
  const page = await it.page();
  const streams: string[] = [];
  await page.routeWebSocket('**/graphql', (socket) => void socket.close({ code: 1013 }));
  page.on('request', (request) => {
    if (request.headers()['accept'] === 'text/event-stream') streams.push(request.postDataJSON().operationName);
  });
  await page.goto(sale());
  await pill(page, 'live').waitFor({ timeout: 120_000 });
  expect([...new Set(streams)].sort()).toEqual(['SaleStatus', 'SaleStock']);
  const before = await stock(page);
  await buyElsewhere('bob');
  await stockMoves(page, before);
});

test('where streams are blocked altogether, the page asks now and then, and buying works', async () => {
  const page = await it.page();
  await page.routeWebSocket('**/graphql', (socket) => void socket.close({ code: 1013 }));
  await page.route('**/graphql', (route) =>
    route.request().headers()['accept'] === 'text/event-stream' ? route.abort() : route.continue(),
  );
  await signIn(page, it.demo, 'operator', `/s/${it.demo.open.slug}`);
  await pill(page, 'polling').waitFor({ timeout: 120_000 });
  await buy(page);
  await page.getByText('You got it!').waitFor();
  const names = recordOperations(page);
  await page.goto(it.demo.url);
  await expect.poll(() => names).toContain('Sales'); // the list polls, too
});

test('a stream that the server refused for a while is subscribed to again, and polling stops', async () => {
  const page = await it.page();
  await page.clock.install();
  let refusing = true;
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      const { id, type } = JSON.parse(String(message));
      if (!refusing || type !== 'subscribe') return server.send(message);
      const payload = [{ message: 'not now', extensions: { code: 'FORBIDDEN' } }];
      socket.send(JSON.stringify({ id, type: 'error', payload }));
    });
  });
  await page.goto(sale());
  await pill(page, 'polling').waitFor();
  refusing = false;
  await page.clock.runFor(40_000);
  await pill(page, 'live').waitFor();
  const before = await stock(page);
  await buyElsewhere('admin');
  await stockMoves(page, before);
});

test('a request with an expired token is sent again with a new one', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice');
  let refused = false;
  await page.route('**/graphql', (route) => {
    if (refused || route.request().postDataJSON().operationName !== 'MyOrders') return route.continue();
    refused = true;
    const errors = [{ message: 'expired', extensions: { code: 'UNAUTHENTICATED' } }];
    return route.fulfill({ status: 401, contentType: 'application/json', body: JSON.stringify({ errors }) });
  });
  const names = recordOperations(page);
  await page.getByRole('link', { name: 'My orders' }).click();
  await page.locator('main li').first().waitFor();
  expect(names.filter((name) => ['MyOrders', 'RefreshSession'].includes(name)).slice(0, 3)).toEqual(['MyOrders', 'RefreshSession', 'MyOrders']);
});

test('after sleep the page sets its clock and reads the state again', async () => {
  const page = await it.page();
  await page.goto(sale());
  await pill(page, 'live').waitFor();
  await page.waitForLoadState('networkidle'); // the first setting of the clock is over
  const names = recordOperations(page);
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await expect.poll(() => names).toContain('SaleBySlug');
  await expect.poll(() => names).toContain('Clock');
  await pill(page, 'live').waitFor();
});

test('while the server is away the page keeps what it has and offers to try again', async () => {
  const page = await it.page();
  await page.goto(it.demo.url);
  await page.getByRole('link', { name: it.demo.open.title }).waitFor();
  await page.route('**/graphql', (route) => route.abort());
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await page.getByText(/Not up to date/).waitFor();
  await page.getByRole('link', { name: it.demo.open.title }).waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText(/Not up to date/).waitFor();
  await page.unroute('**/graphql');
  await page.getByText(/Not up to date/).waitFor({ state: 'detached' }); // by itself
});

test('pages that are opened without a line load by themselves once it is back', async () => {
  for (const [name, heading] of [['My orders', 'My orders'], ['Flash sales', 'Flash sales'], [it.demo.open.title, it.demo.open.title]] as const) {
    const page = await it.page();
    await signIn(page, it.demo, 'alice', name === 'Flash sales' ? '/orders' : '/');
    const link = name === 'Flash sales' ? page.getByRole('link', { name: 'Sales', exact: true }) : page.getByRole('link', { name }).first();
    await link.waitFor();
    await page.context().setOffline(true);
    await link.click();
    await page.context().setOffline(false);
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    await page.getByText('Cannot reach the shop').waitFor({ state: 'detached' });
    await page.context().close();
  }
});

test('a page whose code could not be fetched loads by itself once the line is back', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice');
  let cut = true;
  await page.route(/\/assets\/account\.js/, (route) => (cut ? route.abort() : route.continue()));
  await page.locator('summary').click();
  await page.getByRole('link', { name: 'Account', exact: true }).click();
  await page.getByText('Cannot reach the shop').waitFor();
  cut = false;
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await page.getByText('Cannot reach the shop').waitFor({ state: 'detached' });
  await page.getByLabel('Current password').first().waitFor();
});

test('a reload while the database is down keeps the session', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', '/orders');
  await page.getByRole('heading', { name: 'My orders' }).waitFor();
  let asked = 0;
  await page.route('**/graphql', (route) => {
    if (route.request().postDataJSON().operationName !== 'RefreshSession') return route.continue();
    asked++;
    const errors = [{ message: 'away', extensions: { code: 'UNAVAILABLE' } }];
    return route.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ data: null, errors }) });
  });
  await page.reload();
  await expect.poll(() => asked).toBeGreaterThan(1); // the page tries again by itself
  expect(await page.getByRole('link', { name: 'Sign in' }).count()).toBe(0);
  await page.unroute('**/graphql');
  await page.getByRole('button', { name: 'Try again' }).waitFor({ state: 'detached' });
  expect(await page.getByRole('link', { name: 'Sign in' }).count()).toBe(0);
});

test('while the server does not know the status of a buyer, the page keeps what it knows', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await button(page, 'pay').or(button(page, 'buy')).waitFor();
  if (await button(page, 'buy').count()) await buy(page); // unless bob has bought above
  let losing = true;
  await page.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName !== 'SaleBySlug' || !losing) return route.continue();
    const response = await route.fetch();
    const { data } = await response.json();
    return route.fulfill({ response, json: { data: { sale: { ...data.sale, viewer: null } }, errors: [{ message: 'away' }] } });
  });
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await page.getByText(/Not up to date/).waitFor();
  expect(await button(page, 'pay').count()).toBe(1);
  await page.setViewportSize({ width: 390, height: 844 });
  const [note, picture] = await Promise.all([page.locator('main .note'), page.locator('main .aspect-\\[4\\/3\\]')].map((part) => part.first().boundingBox()));
  expect(note!.y + note!.height).toBeLessThanOrEqual(picture!.y); // the picture does not cover it
  losing = false;
  await page.getByText(/Not up to date/).waitFor({ state: 'detached' });
  expect(await button(page, 'pay').count()).toBe(1);
});

test('a sale that has ended is not followed again and again', async () => {
  const page = await it.page();
  await page.clock.install();
  const asked: string[] = [];
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const { id, type, payload } = JSON.parse(String(text));
      if (type === 'subscribe') asked.push(`${id} ${payload.operationName}`);
      server.send(text);
    });
    server.onMessage((text) => {
      const message = JSON.parse(String(text));
      const sale = message.payload?.data?.saleStatus?.sale;
      if (sale) sale.phase = 'ENDED';
      socket.send(JSON.stringify(message));
      if (message.type === 'next') socket.send(JSON.stringify({ id: message.id, type: 'complete' }));
    });
  });
  await page.goto(sale());
  await page.getByText('This sale has ended').waitFor();
  await page.clock.runFor(30_000);
  const names = asked.map((each) => each.split(' ')[1]);
  expect(names.filter((name) => name === 'SaleStatus')).toHaveLength(1);
  expect(names.filter((name) => name === 'SaleStock').length).toBeLessThan(4);
});

test('a sale that the server learns of a moment later is shown without a reload', async () => {
  const page = await it.page();
  await removePreloadedResponse(page);
  let asked = 0;
  let know = (): void => {};
  const known = new Promise<void>((resolve) => (know = resolve));
  await page.route('**/graphql', async (route) => {
    if (route.request().postDataJSON().operationName !== 'SaleBySlug') return route.continue();
    if (!asked++) return route.fulfill({ contentType: 'application/json', body: JSON.stringify({ data: { sale: null } }) });
    await known;
    return route.continue();
  });
  await page.goto(sale());
  await page.getByRole('heading', { name: 'This sale does not exist.' }).waitFor();
  know();
  await page.getByRole('heading', { name: it.demo.open.title }).waitFor();
  await pill(page, 'live').waitFor();
});

test('an unknown address and an unknown sale each show a not-found page', async () => {
  const page = await it.page();
  await page.goto(`${it.demo.url}/s/no-such-sale`);
  await page.getByRole('heading', { name: 'This sale does not exist.' }).waitFor();
  await page.goto(`${it.demo.url}/nowhere`);
  await page.getByRole('heading', { name: 'This page does not exist.' }).waitFor();
  await page.getByRole('link', { name: 'All sales' }).click();
  await page.getByRole('heading', { name: 'Flash sales' }).waitFor();
});

test('the first paint of the list and of a sale shows data, without a request for it, on a slow device too', async () => {
  const page = await it.page();
  const names = recordOperations(page);
  await page.addInitScript(() => {
    new MutationObserver(() => {
      const app = document.getElementById('app');
      if (app && !app.hidden && app.textContent?.includes('Loading…')) document.documentElement.dataset['loading'] = 'shown';
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  const device = await page.context().newCDPSession(page);
  for (const rate of [1, 8]) {
    await device.send('Emulation.setCPUThrottlingRate', { rate });
    for (const path of ['/', `/s/${it.demo.open.slug}`]) {
      names.length = 0;
      await page.goto(it.demo.url + path);
      await page.getByText(it.demo.open.title).first().waitFor();
      expect(await page.locator('html').getAttribute('data-loading')).toBeNull();
      expect(names).not.toContain(path === '/' ? 'Sales' : 'SaleBySlug');
    }
  }
});
