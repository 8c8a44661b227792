/**
 * What buyers see, in both languages and both themes: no accessibility violation
 * by axe, and nothing wider than a phone of 320 px. With SCREENS=1 the pictures
 * of the screens go to screens/, for a person to look at.
 */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { checkScreen, expectNoLayoutShifts } from './axe';
import { opened, scheduleSales } from './api';
import { removePreloadedResponse } from './first';
import { clickAtBank, button, buy, checkByBrowser, preferPictures, signIn, demoFixture, status } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off', SECKILL_PAYMENT_WINDOW: '59m' });
it.lasting = true;
let soon: string;

/** A screen: the account that opens it, and the steps that lead to it. */
interface Screen {
  name: string;
  as?: string;
  open(page: Page): Promise<void>;
}

const goto = async (page: Page, path: string, sign: string): Promise<void> => {
  await page.goto(it.demo.url + path);
  await page.locator(sign).first().waitFor();
  await expectNoLayoutShifts(page, path);
};
const openSale = (page: Page): Promise<void> => goto(page, `/s/${it.demo.open.slug}`, '[data-button]');

const openCheck = async (page: Page): Promise<void> => {
  await preferPictures(page);
  await openSale(page);
  await button(page, 'buy').click();
  await page.locator('dialog canvas').waitFor();
};

/** Opens the newest order of the user. */
const openOrder = async (page: Page): Promise<void> => {
  await goto(page, '/orders', 'main li a');
  await page.locator('main li a').first().click();
  await page.locator('main dl').waitFor();
};

const screens: Screen[] = [
  { name: 'list', open: (page) => goto(page, '/', 'main h3') },
  { name: 'list-nothing-found', open: (page) => goto(page, '/?q=zzzz', 'main .note') },
  { name: 'sale', open: openSale },
  { name: 'sale-soon', as: 'bob', open: (page) => goto(page, `/s/${soon}`, '[data-button]') },
  { name: 'sign-in', open: (page) => goto(page, '/sign-in', 'form') },
  { name: 'register', open: (page) => goto(page, '/register', 'form') },
  {
    name: 'sign-in-wrong',
    open: async (page) => {
      await goto(page, '/sign-in', 'form');
      await page.locator('input[autocomplete=username]').fill('unknown@demo.example');
      await page.locator('input[autocomplete=current-password]').fill('wrong');
      await page.locator('main form button.btn-main').click();
      await page.locator('[role=alert], dialog').first().waitFor();
    },
  },
  { name: 'check', as: 'bob', open: openCheck },
  {
    name: 'check-wrong',
    as: 'bob',
    open: async (page) => {
      await openCheck(page);
      await page.locator('dialog input').fill('wrong');
      await page.locator('dialog .btn-main').click();
      await page.locator('dialog [role=alert]').waitFor();
    },
  },
  {
    name: 'order-cancelled',
    as: 'bob',
    open: async (page) => {
      await openSale(page);
      await buy(page);
      await openOrder(page);
      await page.getByRole('button', { name: 'Cancel order', exact: true }).click();
      await page.getByRole('button', { name: 'Yes, cancel' }).click();
      await status(page, 'Cancelled').waitFor();
    },
  },
  {
    name: 'broken',
    as: 'bob',
    open: async (page) => {
      await page.route('**/graphql', (route) =>
        route.request().postDataJSON().operationName === 'IssuePath'
          ? route.fulfill({ status: 500, contentType: 'application/json', body: '{"errors":[{"message":"","extensions":{"code":"INTERNAL","errorId":"7C2Y7IKJQBT5"}}]}' })
          : route.continue(),
      );
      await openSale(page);
      await button(page, 'buy').click();
      await checkByBrowser(page); // pictures may be preferred since an earlier screen
      await page.locator('main [role=alert]').waitFor();
      await page.unroute('**/graphql');
    },
  },
  {
    name: 'stale',
    open: async (page) => {
      await goto(page, '/', 'main h3');
      await page.route('**/graphql', (route) => route.abort());
      await page.evaluate(() => dispatchEvent(new Event('online')));
      await page.locator('main .note', { hasText: 'Not up to date' }).waitFor();
    },
  },
  { name: 'sale-bought', as: 'alice', open: (page) => goto(page, `/s/${it.demo.open.slug}`, '[data-button="pay"]') },
  { name: 'orders', as: 'alice', open: (page) => goto(page, '/orders', 'main li') },
  { name: 'orders-none', as: 'operator', open: (page) => goto(page, '/orders', 'main .note') },
  { name: 'orders-signed-out', open: (page) => goto(page, '/orders', 'main .note') },
  { name: 'order', as: 'alice', open: openOrder },
  {
    name: 'order-cancel',
    as: 'alice',
    open: async (page) => {
      await openOrder(page);
      await page.getByRole('button', { name: 'Cancel order', exact: true }).click();
      await page.locator('dialog').waitFor();
    },
  },
  {
    name: 'order-pay',
    as: 'alice',
    open: async (page) => {
      await openOrder(page);
      await page.getByRole('button', { name: /^Pay / }).click();
      await page.locator('svg[role=img]').waitFor();
    },
  },
  {
    name: 'order-paid',
    as: 'alice',
    open: async (page) => {
      await clickAtBank(page, 'Approve');
      await status(page, 'Paid').waitFor();
    },
  },
  {
    name: 'order-refund',
    as: 'alice',
    open: async (page) => {
      await page.getByRole('button', { name: 'Request refund' }).click();
      await page.getByLabel('Reason').fill('Too heavy');
    },
  },
  {
    name: 'order-refunding',
    as: 'alice',
    open: async (page) => {
      await page.getByRole('dialog').getByRole('button', { name: /^Request refund of ¥/ }).click();
      await status(page, 'Refund pending').waitFor();
    },
  },
  {
    name: 'account-menu',
    as: 'alice',
    open: async (page) => {
      await goto(page, '/', 'main h3');
      await page.locator('summary').click();
    },
  },
  { name: 'missing', open: (page) => goto(page, '/nowhere', 'h1') },
  { name: 'sale-missing', open: (page) => goto(page, '/s/nowhere', 'h1') },
];

beforeAll(async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', `/s/${it.demo.open.slug}`);
  await buy(page);
  await page.context().close();
  await opened(it.demo, it.demo.soon.slug); // or the list would change while it is looked at
  [soon] = (await scheduleSales(it.demo, [{ title: 'Tomorrow', currencyCode: 'CNY', price: '10.00', listPrice: '20.00' }], 3_600_000)) as [string];
});

const pages = new Map<string, Page>();
test.each(screens)('$name is accessible and fits, in both languages, light and dark', async ({ name, as: who = '', open }) => {
  let page = pages.get(who);
  if (!page) {
    pages.set(who, (page = await it.page()));
    if (who) await signIn(page, it.demo, who);
  }
  await open(page);
  await checkScreen(page, name);
  await page.unrouteAll();
});

/** API fields with user-written text, which may contain long words and URLs. */
const written = new Set(['title', 'name', 'displayName', 'description', 'rules', 'note', 'reason']);
const long = `https://status.example.com/incidents/${'2026-11-22-phone-drop-'.repeat(4)} ${'Lagerraeumungsverkauf'.repeat(4)}`;
const lengthened = (json: string | Buffer): string =>
  JSON.stringify(JSON.parse(String(json)), (key, value: unknown) => (key === 'notice' || (written.has(key) && value && typeof value === 'string') ? long : value));

test('addresses and long words that people write are broken within the page', async () => {
  const page = await it.page();
  await removePreloadedResponse(page);
  await signIn(page, it.demo, 'admin', '/operate/orders');
  const order = await page.locator('main tbody a[href^="/orders/"]').first().getAttribute('href');
  await goto(page, '/operate', 'main li a');
  const adminSale = await page.getByRole('link', { name: it.demo.open.title }).getAttribute('href');
  await page.route('**/graphql', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: lengthened(await response.body()) });
  });
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => socket.send(lengthened(message)));
  });
  const found: string[] = [];
  for (const [path, sign] of [
    ['/', 'main h3'],
    [`/s/${it.demo.open.slug}`, '[data-button]'],
    [order!, 'main dl'],
    ['/operate', 'main li'],
    [adminSale!, '#figures'],
    ['/operate/goods', 'main li'],
    ['/operate/orders', 'main tbody'],
  ] as const) {
    await goto(page, path, sign);
    await page.getByRole('main').getByText(long.slice(0, 30)).filter({ visible: true }).first().waitFor();
    for (const width of [360, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate(async () => {
        // Two frames: in the first one the plots follow the width, before they are painted.
        await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
        const boxes = [...document.querySelectorAll('html, main, .card, .note')].filter((box) => box.scrollWidth > box.clientWidth);
        return boxes.map((box) => `${box.tagName} ${box.className}: ${box.scrollWidth} in ${box.clientWidth}`);
      });
      found.push(...wide.map((box) => `${path} at ${width}: ${box}`));
      if (process.env['SCREENS']) await page.screenshot({ path: `screens/long-${path.slice(1, 15).replaceAll('/', '-')}-${width}.png`, fullPage: true });
    }
  }
  await page.context().close();
  expect(found).toEqual([]);
});
