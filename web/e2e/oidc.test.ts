/** Sign-in with the account of another provider: a real one, from a library. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { checkScreen } from './axe';
import { browserFixture, startDemo, type Demo } from './shop';

const it = browserFixture();
const dir = mkdtempSync(join(tmpdir(), 'oidc-'));
let provider: ChildProcess;
let demo: Demo;

beforeAll(async () => {
  provider = spawn('go', ['run', '.'], { cwd: join(import.meta.dirname, '../../test/oidcprovider'), stdio: ['pipe', 'pipe', 'inherit'] });
  const issuer = await new Promise<string>((resolve, reject) => {
    createInterface(provider.stdout!).once('line', resolve);
    provider.once('exit', (code) => reject(new Error(`the provider ended with ${code}`)));
  });
  writeFileSync(join(dir, 'secret'), 'secret');
  const settings = { issuer, clientId: 'shop', clientSecretFile: 'secret', externalIdClaim: 'sub' };
  writeFileSync(
    join(dir, 'oidc.json'),
    JSON.stringify([
      { name: 'corp', title: 'Corp', ...settings },
      { name: 'post', title: 'Post', responseMode: 'form_post', ...settings },
    ]),
  );
  demo = await startDemo({ SECKILL_LIMITS: 'off', SECKILL_OIDC: join(dir, 'oidc.json') });
  provider.stdin!.write(`${demo.url}/auth/oidc/corp/callback ${demo.url}/auth/oidc/post/callback\n`);
  const start = (): Promise<Response> => fetch(`${demo.url}/auth/oidc/corp/start`, { redirect: 'manual' });
  const led = async (): Promise<void> => expect((await start()).headers.get('location')).toContain(issuer);
  await vi.waitFor(led, { timeout: 120_000, interval: 200 }); // then its metadata is cached
});

afterAll(async () => {
  await demo?.stop();
  provider?.stdin?.end();
  rmSync(dir, { recursive: true });
});

test('a provider of another site calls back by POST', async () => {
  const page = await it.page();
  await page.goto(`${demo.url}/sign-in`);
  await page.getByRole('link', { name: 'Continue with Post' }).click();
  await page.waitForURL(/localhost:\d+\/login\/username/);
  const posted = page.waitForRequest((request) => request.method() === 'POST' && request.url().startsWith(`${demo.url}/auth/oidc/post/callback`));
  await page.locator('input[name="username"]').fill('test-user@localhost');
  await page.locator('input[name="password"]').fill('verysecure');
  await page.locator('button[type="submit"]').click();
  await posted;
  await page.waitForURL((url) => url.origin === new URL(demo.url).origin && !/^\/(sign-in|auth)/.test(url.pathname));
  await page.goto(`${demo.url}/account`);
  await page.getByText('test-user@zitadel.ch').first().waitFor();
});

test('a user signs in with a provider, and is led back to the page from which they came', async () => {
  const page = await it.page();
  await page.goto(`${demo.url}/orders`);
  await page.getByRole('link', { name: 'Sign in' }).first().click();
  await checkScreen(page, 'sign in with a provider');
  await page.getByRole('link', { name: 'Continue with Corp' }).click();
  await page.waitForURL(/localhost:\d+\/login\/username/);
  await page.locator('input[name="username"]').fill('test-user@localhost');
  await page.locator('input[name="password"]').fill('verysecure');
  await page.locator('button[type="submit"]').click();
  await page.waitForURL((url) => url.origin === new URL(demo.url).origin && !url.pathname.startsWith('/sign-in'));
  await page.goto(`${demo.url}/account`);
  await page.getByText('test-user@zitadel.ch').first().waitFor();
});

test('a user who declines at the provider is shown why they are not signed in', async () => {
  const page = await it.page();
  await page.goto(`${demo.url}/sign-in`);
  const start = await page.getByRole('link', { name: 'Continue with Corp' }).getAttribute('href');
  expect(start).toContain('/auth/oidc/corp/start');
  const state = await page.request.get(new URL(start!, demo.url).href, { maxRedirects: 0 });
  const asked = new URL(state.headers()['location']!);
  await page.goto(`${demo.url}/auth/oidc/corp/callback?error=access_denied&state=${asked.searchParams.get('state')}`);
  await page.getByRole('alert').getByText('The sign-in was cancelled.').waitFor();
  await checkScreen(page, 'a sign-in at a provider was declined');
});
