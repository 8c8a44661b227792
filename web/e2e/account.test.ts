/** The account page, one-time codes at the sign-in, and what administrators change about users. */
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { subscribeBrowser } from './api';
import { checkScreen } from './axe';
import { demoCredentials, fillSignIn, signIn, demoFixture } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

/** The code that an authenticator app shows (RFC 6238: SHA-1, 30 s, six digits). */
function codeOf(secret: string, atMs: number): string {
  const bits = [...secret].map((char) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g)!.map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(atMs / 30_000)));
  const mac = createHmac('sha1', key).update(counter).digest();
  const offset = mac.at(-1)! & 15;
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

test('a user changes the password and sets up one-time codes, and then needs both to sign in', async () => {
  const page = await it.page();
  const { account, password } = demoCredentials('alice');
  const next = 'a new long passphrase';
  await signIn(page, it.demo, 'alice', '/account');
  await checkScreen(page, 'account');
  const change = page.locator('section', { hasText: 'Change password' });
  await change.getByLabel('Current password').fill(password);
  await change.getByLabel('New password').fill(next);
  await change.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Password changed.').waitFor();

  const codes = page.locator('section', { hasText: 'One-time codes' });
  await codes.getByLabel('Current password').fill(next);
  await codes.getByRole('button', { name: 'Set up' }).click();
  const secret = await codes.locator('code').innerText();
  const on = page.getByText('One-time codes are on.');
  await expect.poll(async () => { // a code is good for a minute
    await codes.getByLabel('One-time code').fill(codeOf(secret, Date.now()));
    await codes.getByRole('button', { name: 'Turn on' }).click();
    await on.or(codes.getByRole('alert')).first().waitFor();
    return on.count();
  }).toBe(1);
  const recovery = await codes.locator('li').allInnerTexts();
  expect(recovery).toHaveLength(10);
  await checkScreen(page, 'recovery codes');

  const other = await it.page();
  await other.goto(`${it.demo.url}/sign-in?next=/account`);
  await fillSignIn(other, account, next);
  await other.getByLabel('One-time code').fill('000000');
  await other.locator('main form button.btn-main').click();
  await other.getByRole('alert').waitFor();
  await other.getByLabel('One-time code').fill(recovery[0]!);
  await other.locator('main form button.btn-main').click();
  await other.waitForURL(`${it.demo.url}/account`);
});

test('an administrator disables a user, whose session ends, and enables the user again', async () => {
  const bob = await it.page();
  await signIn(bob, it.demo, 'bob', '/orders');
  const page = await it.page();
  await signIn(page, it.demo, 'admin', '/operate/people');
  await checkScreen(page, 'people');
  await page.getByRole('button', { name: 'Manage: Bob' }).click();
  const sheet = page.getByRole('dialog');
  await checkScreen(page, 'manage a user');
  await sheet.getByLabel('Reason').fill('a bot');
  await sheet.getByRole('button', { name: 'Disable sign-in' }).click();
  await page.locator('main li', { hasText: 'bob@demo.example' }).getByText('Disabled').waitFor();
  await bob.reload();
  await bob.getByRole('link', { name: 'Sign in' }).first().waitFor();
  await page.getByRole('button', { name: 'Manage: Bob' }).click();
  await sheet.getByRole('button', { name: 'Enable sign-in' }).click();
  await sheet.waitFor({ state: 'detached' });
  await signIn(bob, it.demo, 'bob', '/orders');
});

test('a user with a browser chooses the notice of a turn in the queue, for browsers only', async () => {
  await subscribeBrowser(it.demo, demoCredentials('operator'), 'Firefox, Linux');
  const page = await it.page();
  await signIn(page, it.demo, 'operator', '/account');
  await page.getByText('Firefox, Linux, since').waitFor();
  const turn = page.getByRole('group', { name: 'Your turn in the queue' }).getByRole('checkbox');
  await expect.poll(() => turn.count()).toBe(1);
  expect(await turn.isChecked()).toBe(true); // the first browser turned every kind on
  await checkScreen(page, 'notices');
  const stored = page.waitForResponse((response) => response.request().postDataJSON()?.operationName === 'UpdateNoticeSettings');
  await turn.uncheck();
  await stored;
  await page.reload();
  await turn.waitFor();
  expect(await turn.isChecked()).toBe(false);
});

test('the service worker shows the notices that arrive and opens their pages', async () => {
  const page = await it.page();
  await page.goto(it.demo.url);
  const cdp = await page.context().newCDPSession(page);
  const registered = new Promise<string>((found) => {
    cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => registrations[0] && found(registrations[0].registrationId));
  });
  await cdp.send('ServiceWorker.enable');
  const started = page.context().waitForEvent('serviceworker');
  const scope = await page.evaluate(async () => {
    await navigator.serviceWorker.register('/push.js');
    return (await navigator.serviceWorker.ready).scope;
  });
  expect(scope).toBe(`${it.demo.url}/`);

  // Chromium without a window shows no notifications and lets no script open a page: the worker's calls are recorded.
  const worker = await started;
  await worker.evaluate(() => {
    const here = globalThis as unknown as { calls: unknown[]; registration: object; clients: object };
    here.calls = [];
    const record = (name: string) => async (...values: unknown[]) => void here.calls.push([name, ...values]);
    Object.assign(here.registration, { showNotification: record('show') });
    Object.assign(here.clients, { openWindow: record('open') });
  });
  const calls = () => worker.evaluate(() => (globalThis as unknown as { calls: unknown[] }).calls);
  const notice = { title: 'Order N-1: pay by 10:15', body: 'Kettle is reserved for you.', path: '/orders/ord_1', tag: 'order', language: 'en' };
  const origin = it.demo.url;
  await cdp.send('ServiceWorker.deliverPushMessage', { origin, registrationId: await registered, data: JSON.stringify(notice) });
  const { title, body, tag, path } = notice;
  const shown = ['show', title, { body, tag, renotify: true, lang: 'en', data: { path } }];
  await expect.poll(calls).toEqual([shown]);
  await worker.evaluate((data) => {
    const click = new Event('notificationclick');
    dispatchEvent(Object.assign(click, { notification: { close: () => {}, data }, waitUntil: () => {} }));
  }, { path });
  await expect.poll(calls).toEqual([shown, ['open', `${origin}${path}`]]);
});
