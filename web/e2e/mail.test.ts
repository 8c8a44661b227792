/** E-mails about an account, with a real SMTP server: confirmation links, password reset, personal data. */
import { readFileSync } from 'node:fs';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkScreen } from './axe';
import { buy, browserFixture, demoCredentials, fillSignIn, signIn, startDemo, type Demo } from './shop';

const it = browserFixture();
const mails: { to: string; text: string }[] = [];
let server: SMTPServer;
let demo: Demo;
/** The password of alice from the first test on. */
const chosen = 'a new long passphrase';

beforeAll(async () => {
  server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData(stream, { envelope }, done) {
      let text = '';
      stream.on('data', (part: Buffer) => (text += part.toString()));
      stream.on('end', () => {
        mails.push({ to: envelope.rcptTo[0]!.address, text: text.replace(/=\r\n/g, '') });
        done();
      });
    },
  });
  const port = await new Promise<number>((listening) => {
    const socket = server.listen(0, '127.0.0.1', () => listening(socket.address().port));
  });
  demo = await startDemo({
    SECKILL_LIMITS: 'off',
    SECKILL_SMTP_URL: `smtp://127.0.0.1:${port}`,
    SECKILL_SMTP_TLS: 'off',
    SECKILL_SMTP_FROM: 'Shop <shop@shop.example>',
  });
});

afterAll(async () => {
  await demo?.stop();
  await new Promise<void>((closed) => server.close(closed));
});

/** The link in the newest e-mail to an address whose path is this. */
async function linkTo(address: string, path: string | RegExp): Promise<string> {
  const links = () =>
    mails
      .filter(({ to }) => to === address)
      .flatMap(({ text }) => text.match(/https?:\/\/[\w.:/#~-]+/g) ?? [])
      .filter((link) => (typeof path === 'string' ? new URL(link).pathname === path : path.test(new URL(link).pathname)));
  await expect.poll(links).not.toHaveLength(0);
  return links().at(-1)!;
}

test('a user who forgot the password chooses another one with the link of an e-mail', async () => {
  const { account } = demoCredentials('alice');
  const page = await it.page();
  await page.goto(`${demo.url}/sign-in`);
  await page.getByRole('link', { name: 'Forgot your password?' }).click();
  await checkScreen(page, 'forgot password');
  await page.getByLabel('E-mail or phone').fill(account);
  await page.getByRole('button', { name: 'Send link' }).click();
  await page.getByText('If there is an account').waitFor();

  await page.goto(await linkTo(account, '/reset-password'));
  await checkScreen(page, 'reset password');
  await page.getByLabel('New password').fill(chosen);
  await page.getByRole('button', { name: 'Save password' }).click();
  await page.getByText('Your password was changed').waitFor();
  await page.goto(`${demo.url}/sign-in?next=/account`);
  await fillSignIn(page, account, chosen);
  await page.getByText('Your address is confirmed.').waitFor();

  const again = await it.page();
  await again.goto(await linkTo(account, '/reset-password'));
  await again.getByLabel('New password').fill('yet another passphrase');
  await again.getByRole('button', { name: 'Save password' }).click();
  await again.getByRole('alert').getByText('This link was used before').waitFor();
});

test('a user turns off a kind of notices, and another one with the link of its e-mail', async () => {
  const { account } = demoCredentials('alice');
  const page = await it.page({ viewport: { width: 800, height: 480 } });
  await page.goto(`${demo.url}/sign-in?next=/orders`);
  await fillSignIn(page, account, chosen);
  await page.waitForURL(`${demo.url}/orders`);
  await page.goto(`${demo.url}/account#notices`);
  const box = (kind: string) => page.getByRole('group', { name: kind }).getByLabel('E-mail');
  await expect.poll(() => page.evaluate(() => Math.abs(document.getElementById('notices')?.getBoundingClientRect().top ?? 9_999)), { timeout: 120_000 }).toBeLessThan(120);
  const stored = page.waitForResponse((response) => response.request().postDataJSON()?.operationName === 'UpdateNoticeSettings');
  await box('Refund').uncheck();
  await stored;
  await page.reload();
  await box('Refund').waitFor();
  expect([await box('Refund').isChecked(), await box('Order placed').isChecked()]).toEqual([false, true]);

  await page.goto(`${demo.url}/s/${demo.open.slug}`);
  await buy(page);
  await page.goto(await linkTo(account, /^\/unsubscribe\//)); // of the order that was placed
  await page.getByRole('heading', { name: 'Stop e-mails about new orders?' }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('heading', { name: 'You get no more e-mails about new orders.' }).waitFor();
  await page.getByRole('link', { name: 'Choose your notices' }).click();
  await box('Order placed').waitFor();
  expect([await box('Order placed').isChecked(), await box('Payment deadline').isChecked()]).toEqual([false, true]);
});

test('a user confirms and changes the address, downloads the personal data and deletes the account', async () => {
  const { account, password } = demoCredentials('bob');
  const page = await it.page();
  await signIn(page, { ...demo }, 'bob', '/account');
  await page.getByText('Your address is not confirmed yet.').waitFor();
  await checkScreen(page, 'account with e-mail');
  const section = page.locator('section', { hasText: 'Change e-mail address' });
  await section.getByRole('button', { name: 'Send link' }).first().click();
  await page.getByText(`We have sent a link to ${account}.`).waitFor();
  const link = await linkTo(account, '/verify-email');
  await page.goto(link);
  await page.getByText('Press the button to confirm').waitFor();
  await checkScreen(page, 'confirm address');
  await page.goto(`${demo.url}/account`); // the link was opened, as by a scanner of e-mails, and its button was not pressed
  await page.getByText('Your address is not confirmed yet.').waitFor();
  for (const _ of ['first', 'again']) {
    await page.goto(`${demo.url}/`);
    await page.goto(link);
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText(`${account} is confirmed.`).waitFor();
  }
  await checkScreen(page, 'confirmed address');
  const chinese = await it.page({ locale: 'zh-CN' });
  await chinese.goto(link);
  await chinese.getByRole('button', { name: '确认' }).click();
  await chinese.getByText(`${account} 验证成功。`).waitFor();

  await page.goto(`${demo.url}/account`);
  await page.getByText('Change e-mail address or phone number').click();
  await section.getByLabel('New e-mail address or phone number').fill('+1 (206) 555-0123'); // no service sends messages to phone numbers
  await section.getByLabel('Current password').fill(password);
  await section.getByRole('button', { name: 'Send link' }).click();
  await section.getByRole('alert').getByText('cannot send messages to phone numbers').waitFor();
  await section.getByLabel('New e-mail address or phone number').fill('robert@example.com');
  await section.getByLabel('Current password').fill(password);
  await section.getByRole('button', { name: 'Send link' }).click();
  await page.goto(await linkTo('robert@example.com', '/verify-email'));
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('robert@example.com is confirmed.').waitFor();

  await page.goto(`${demo.url}/account`);
  await page.getByText('robert@example.com').first().waitFor();
  const data = page.locator('section', { hasText: 'Personal data' });
  await data.getByText('Download my data').first().click();
  await data.getByLabel('Current password').first().fill(password);
  const [file] = await Promise.all([page.waitForEvent('download'), data.getByRole('button', { name: 'Download my data' }).click()]);
  expect(JSON.parse(readFileSync(await file.path(), 'utf8')).account).toBe('robert@example.com');

  await data.getByText('Delete account').first().click();
  await data.getByLabel('Current password').last().fill(password);
  await data.getByRole('button', { name: 'Delete account' }).click();
  await page.waitForURL(`${demo.url}/`);
  await page.getByRole('link', { name: 'Sign in' }).first().waitFor();
  await page.goto(`${demo.url}/sign-in`);
  await fillSignIn(page, 'robert@example.com', password);
  await page.getByRole('alert').waitFor();
});
