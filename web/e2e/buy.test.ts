import { expect, test } from 'vitest';
import { checkScreen } from './axe';
import { button, buy, checkByBrowser, fillSignIn, recordOrderKeys, preferPictures, recordOperations, signIn, demoFixture } from './shop';

const it = demoFixture();

test('a buyer goes from the list to an order, signing in on the way', async () => {
  const page = await it.page();
  await page.goto(it.demo.url);
  await page.getByRole('link', { name: it.demo.open.title }).click();
  const items = page.getByRole('radio');
  await items.nth(1).click();
  await expect.poll(() => items.nth(1).isChecked()).toBe(true);
  const chosen = page.url();
  expect(chosen).toContain('?item=');
  const words = (await button(page, 'sign-in').innerText()).replace('Sign in to buy ·', '');
  expect(words).toMatch(/^\s¥[\d,.]+$/);
  await button(page, 'sign-in').click();
  await fillSignIn(page, 'alice@demo.example');
  await page.waitForURL(chosen);
  await expect.poll(() => items.nth(1).isChecked()).toBe(true);
  expect(await button(page, 'buy').innerText()).toBe(`Buy ·${words}`);
  await buy(page);
  await button(page, 'pay').click();
  await page.getByRole('heading', { level: 1, name: /^Order / }).waitFor();
  const number = await page.getByRole('heading', { level: 1 }).innerText();

  await page.getByRole('link', { name: 'My orders' }).click();
  await page.locator('main li').first().waitFor();
  expect(await page.locator('main li').count()).toBe(1);
  await page.locator('main li a').click();
  await page.getByRole('heading', { level: 1, name: number }).waitFor();
});

test('a new buyer makes an account by proof of work, in Chinese', async () => {
  const page = await it.page({ locale: 'zh-CN' });
  await page.goto(`${it.demo.url}/register?next=${encodeURIComponent(`/s/${it.demo.open.slug}`)}`);
  await page.getByRole('button', { name: '注册账号' }).click(); // empty: nothing is sent
  expect(await page.getByText('请填写此项。').count()).toBe(3);
  expect(await page.getByLabel('昵称').evaluate((field) => field === document.activeElement)).toBe(true);
  await checkScreen(page, 'register-empty');
  await page.getByLabel('昵称').fill('小明');
  await page.getByLabel('邮箱或手机号').fill('xiaoming@');
  await page.getByText('请输入正确的邮箱').waitFor();
  await page.getByLabel('密码', { exact: true }).fill('Password2026!'); // on a list that only the server has
  await page.getByLabel('邮箱或手机号').fill('xiaoming@demo.example');
  await page.getByRole('button', { name: '注册账号' }).click();
  await checkByBrowser(page);
  await page.getByText('密码过于简单').waitFor();
  expect(await page.getByLabel('密码', { exact: true }).evaluate((field) => field === document.activeElement)).toBe(true);
  await checkScreen(page, 'register-refused');
  await page.getByLabel('密码', { exact: true }).fill('a-long-password');
  await page.getByRole('button', { name: '注册账号' }).click();
  await checkByBrowser(page);
  await page.waitForURL(`${it.demo.url}/s/${it.demo.open.slug}`);
  await buy(page);
  await page.getByText('抢到了！').waitFor();
});

test('a reload while an order is sent creates one order, with the same idempotency key', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'operator', `/s/${it.demo.open.slug}`);
  const keys = recordOrderKeys(page);
  const names = recordOperations(page);
  let lost = false;
  await page.route('**/graphql', async (route) => {
    if (lost || route.request().postDataJSON()?.operationName !== 'PlaceOrder') return route.continue();
    lost = true;
    await route.fetch(); // the server takes the order, the answer is lost with the page
    await page.reload();
  });
  await button(page, 'buy').click();
  await checkByBrowser(page);
  await button(page, 'pay').waitFor();
  expect(keys.size).toBe(1);
  expect(names.filter((name) => name === 'IssuePath')).toHaveLength(1);
  await page.goto(`${it.demo.url}/orders`);
  await page.locator('main li').first().waitFor();
  expect(await page.locator('main li').count()).toBe(1);
});

test('signing out in one tab signs the other out', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice');
  const other = await page.context().newPage();
  await other.goto(`${it.demo.url}/orders`);
  await other.locator('main li').first().waitFor();
  await page.locator('summary').click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await other.getByText('Sign in to see your orders.').waitFor();
  expect(await other.locator('main li').count()).toBe(0);
});

test('the session cookie is hidden from scripts and survives a reload', async () => {
  const page = await it.page();
  await signIn(page, it.demo, 'alice', '/orders');
  const cookies = await page.context().cookies(`${it.demo.url}/graphql`);
  expect(cookies.map(({ name }) => name)).toContain('seckill_refresh');
  for (const { name, ...cookie } of cookies) expect(cookie).toMatchObject({ httpOnly: name !== 'seckill_signed_in', sameSite: 'Strict' });
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain('oken');
  const names = recordOperations(page);
  await page.reload();
  await page.locator('main li').first().waitFor();
  expect(names).toContain('RefreshSession');
  await page.locator('summary').click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByText('Sign in to see your orders.').waitFor();
  const left = await page.context().cookies(`${it.demo.url}/graphql`);
  expect(left.map(({ name }) => name)).not.toContain('seckill_refresh');
});

test('a session that another page began is that of the shop, and of its user', async () => {
  const page = await it.page();
  const beginElsewhere = async (account: string): Promise<void> => {
    const query = 'mutation ($input: LoginInput!) { login(input: $input) { userErrors { code } } }';
    const data = { query, variables: { input: { account: `${account}@demo.example`, password: 'flash-sale-demo' } } };
    const answer = await page.request.post(`${it.demo.url}/graphql`, { data, headers: { 'x-seckill-session': 'cookie' } });
    expect(await answer.json()).toMatchObject({ data: { login: { userErrors: [] } } });
  };
  const names = recordOperations(page);
  await page.goto(`${it.demo.url}/orders`);
  await page.getByText('Sign in to see your orders.').waitFor();
  expect(names, 'a visitor asks for no session').not.toContain('RefreshSession');
  await beginElsewhere('alice');
  await page.goto(`${it.demo.url}/account`);
  await page.getByText('alice@demo.example').first().waitFor();
  await beginElsewhere('bob'); // while the page keeps the name of alice
  await page.goto(`${it.demo.url}/account`);
  await page.getByText('bob@demo.example').first().waitFor();
  expect(await page.getByText('alice').count()).toBe(0);
});

test('a refused buyer sees the step, the reason and the units that were left', async () => {
  const page = await it.page();
  await preferPictures(page);
  await signIn(page, it.demo, 'bob', `/s/${it.demo.open.slug}`);
  await button(page, 'buy').click();
  const sheet = page.getByRole('dialog');
  await sheet.getByLabel('Your answer').fill('wrong');
  await sheet.getByRole('button', { name: 'Verify', exact: true }).click();
  await sheet.getByText('That was not right').waitFor();
  const why = page.locator('[data-attempts]');
  await expect
    .poll(
      async () => {
        await page.reload(); // a refusal is written a second later
        await why.locator('summary').click();
        await why.locator('li, p').first().waitFor();
        return why.innerText();
      },
      { timeout: 120_000 },
    )
    .toMatch(/Security check · 1×[\s\S]*Units left at that moment: \d+/);
});

test('a captcha closes when the last unit is sold', async () => {
  const [slow, fast] = await Promise.all([it.page(), it.page()]);
  await preferPictures(slow);
  for (const [page, who] of [[slow, 'bob'], [fast, 'admin']] as const) {
    await signIn(page, it.demo, who, `/s/${it.demo.open.slug}`);
    await page.getByRole('radio', { name: 'Kestrel mini drone' }).check(); // a single unit
  }
  await button(slow, 'buy').click();
  await slow.locator('dialog canvas').waitFor();
  await buy(fast);
  await slow.locator('dialog').waitFor({ state: 'detached' });
  await button(slow, 'waitlist').waitFor();
});
