/** The shop with a third-party captcha, whose script, iframe and verification endpoint a test server provides. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { confirm } from './admin';
import { button, browserFixture, demoCredentials, signIn, startDemo, type Demo } from './shop';

const SECRET = 'secret of the shop';

/** Like the scripts of hCaptcha and reCAPTCHA: a frame with a box to tick, and a task in a popup of the page. */
const script = `(() => {
  const address = new URL(document.currentScript.src);
  let rendered = 0;
  window.hcaptcha = {
    render(at, { sitekey, callback }) {
      const frame = document.createElement('iframe');
      frame.title = 'Check ' + ++rendered + ' of ' + sitekey;
      frame.src = 'http://localhost:' + address.port + '/frame';
      at.append(frame);
      addEventListener('message', ({ source }) => {
        if (source !== frame.contentWindow) return;
        const popup = document.createElement('button');
        popup.textContent = 'Pick the drones';
        popup.style.cssText = 'position: fixed; top: 0; left: 0; z-index: 2000000000';
        popup.onclick = () => (popup.remove(), callback('token of ' + sitekey));
        document.body.append(popup);
      });
      return 1;
    },
    remove() {},
  };
  window[address.searchParams.get('onload')]();
})();`;
const frame = `<!doctype html><button onclick="parent.postMessage('ticked', '*')">I am human</button>`;

const it = browserFixture();
let check: Server;
let demo: Demo;
let host: string;
const verified: string[] = [];
let accepts = true;

beforeAll(async () => {
  check = createServer(async (request, response) => {
    const { pathname } = new URL(request.url!, 'http://check');
    if (pathname === '/api.js') return response.setHeader('content-type', 'text/javascript').end(script);
    if (pathname === '/frame') return response.setHeader('content-type', 'text/html').end(frame);
    let body = '';
    for await (const part of request) body += part;
    const sent = new URLSearchParams(body);
    verified.push(`${sent.get('secret')}, ${sent.get('response')}`);
    return response.end(JSON.stringify({ success: accepts }));
  });
  await new Promise<void>((resolve) => check.listen(0, '127.0.0.1', resolve));
  const { port } = check.address() as AddressInfo;
  host = `127.0.0.1:${port}`;
  demo = await startDemo({
    SECKILL_LIMITS: 'off',
    'captcha.verify_url': `http://${host}/siteverify`,
    'captcha.script_url': `http://${host}/api.js`,
    'captcha.origins': `http://localhost:${port}`,
    'captcha.site_key': 'shop',
    'captcha.secret': SECRET,
  });
  const operator = await it.page();
  await signIn(operator, demo, 'operator', '/operate');
  await operator.getByRole('link', { name: demo.open.title }).click();
  await operator.locator('summary', { hasText: 'Access controls' }).click();
  await operator.getByLabel('External check').check();
  await operator.getByRole('button', { name: 'Save', exact: true }).click();
  await operator.getByText('Needs a second person').waitFor();
  const admin = await it.page();
  await signIn(admin, demo, 'admin', '/operate');
  await confirm(admin, operator.url());
  await operator.getByText('Access controls changed').first().waitFor();
});
afterAll(async () => {
  await demo?.stop();
  check?.close();
});

/** Opens the sale as a buyer; also returns the paths that the page has loaded from the captcha provider. */
async function visit(who: string, options: Parameters<typeof it.page>[0] = {}): Promise<{ page: Page; loaded: string[] }> {
  const page = await it.page(options);
  const loaded: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).host === host) loaded.push(new URL(request.url()).pathname);
  });
  await signIn(page, demo, demoCredentials(who), `/s/${demo.open.slug}`);
  return { page, loaded };
}

/** Solves the nth widget that the page has rendered; the previous one may still be in the document. */
async function answer(page: Page, nth = 1): Promise<void> {
  const title = `iframe[title="Check ${nth} of shop"]`;
  const again = page.getByRole('dialog').getByRole('button', { name: /Try again|重试/ }); // after 20 seconds without the script
  await page.locator(title).or(again).first().waitFor();
  if (await again.count()) await again.click();
  await page.frameLocator(title).getByRole('button', { name: 'I am human' }).click();
  await page.getByRole('button', { name: 'Pick the drones' }).click();
}

test('a buyer solves the third-party captcha and buys; nothing is loaded from its provider before', async () => {
  const { page, loaded } = await visit('alice');
  await button(page, 'buy').waitFor();
  expect(loaded).toEqual([]);
  accepts = false;
  await button(page, 'buy').click();
  await answer(page);
  await page.getByRole('alert').waitFor(); // refused: the next challenge comes
  accepts = true;
  await answer(page, 2);
  await button(page, 'pay').waitFor();
  expect(verified.length).toBeGreaterThan(1);
  expect(new Set(verified)).toEqual(new Set([`${SECRET}, token of shop`]));
  expect(new Set(loaded)).toEqual(new Set(['/api.js']));
});

test('a widget that is blocked says whose it is, in both languages, and can be tried again', async () => {
  for (const [who, locale, words, again] of [
    ['bob', 'en-GB', 'could not be loaded from', 'Try again'],
    ['alice', 'zh-CN', '无法从', '重试'], // bought the first item in the test above
  ] as const) {
    const { page } = await visit(who, { locale });
    if (who === 'alice') await page.getByRole('radio', { name: 'Quill e-reader' }).check();
    await page.route(`http://${host}/api.js?*`, (route) => route.abort());
    await button(page, 'buy').click();
    const alert = page.getByRole('dialog').getByRole('alert').filter({ hasText: words });
    await alert.waitFor();
    expect(await alert.textContent()).toContain(host);
    await page.unroute(`http://${host}/api.js?*`);
    await alert.getByRole('button', { name: again }).click();
    await answer(page);
    await button(page, 'pay').waitFor();
  }
});
