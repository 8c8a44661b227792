/** Admin pages that stay true: lists longer than one page of the API, and open pages whose objects others change. */
import { expect, test } from 'vitest';
import { act, saleStatus } from './admin';
import { createDraft, createProducts, productsOf, submitDraft } from './api';
import { demoFixture, signIn } from './shop';

const it = demoFixture({ SECKILL_LIMITS: 'off' });

test('a draft keeps its product behind 112 newer ones, and an older one can be chosen', async () => {
  const [kept, older] = await createProducts(it.demo, ['Product A', 'Product B']);
  await createProducts(it.demo, Array.from({ length: 112 }, (_, i) => `Filler ${i}`));
  const id = await createDraft(it.demo, 'Quiet draft', kept!);
  const page = await it.page();
  await signIn(page, it.demo, 'operator', `/operate/sales/${id}/edit`);
  await page.getByLabel('Title').fill('Another title');
  await page.getByRole('button', { name: 'Save draft' }).click();
  await page.getByRole('heading', { name: 'Another title' }).waitFor();
  expect(await productsOf(it.demo, id)).toEqual(['Product A']);

  await page.getByRole('link', { name: 'Edit' }).click();
  expect(older).toBeDefined();
  await page.getByLabel('Find a product').fill('product b');
  await page.getByLabel(/^Product/).locator('option', { hasText: 'Product B' }).waitFor({ state: 'attached' });
  await page.getByLabel(/^Product/).selectOption({ label: 'Product B' });
  await page.getByRole('button', { name: 'Save draft' }).click();
  await page.getByRole('link', { name: 'Edit' }).waitFor();
  expect(await productsOf(it.demo, id)).toEqual(['Product B']);
});

test('an open page and an open list follow a sale that another person approves', async () => {
  const [product] = await createProducts(it.demo, ['Followed product']);
  const id = await createDraft(it.demo, 'Followed drop', product!);
  const operator = await it.page();
  await signIn(operator, it.demo, 'operator', `/operate/sales/${id}`);
  await act(operator, 'Submit for review');
  await saleStatus(operator, 'In review').waitFor();
  const list = await operator.context().newPage();
  await list.goto(`${it.demo.url}/operate/sales`);
  const row = list.locator('main li', { hasText: 'Followed drop' });
  await row.getByText('In review').waitFor();
  const home = await operator.context().newPage();
  await home.goto(`${it.demo.url}/operate`);
  await home.locator('main li', { hasText: 'Followed drop' }).getByText('In review').waitFor();
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', `/operate/sales/${id}`);
  await act(admin, 'Approve');
  await saleStatus(operator, 'Approved').waitFor({ timeout: 15_000 });
  await row.getByText('Approved').waitFor({ timeout: 25_000 });
  await home.locator('main li', { hasText: 'Followed drop' }).getByText('Approved').waitFor({ timeout: 25_000 });
});

test('a sale whose opening has passed is not approved, and the refusal names no field that the form lacks', async () => {
  const [product] = await createProducts(it.demo, ['Late product']);
  const id = await createDraft(it.demo, 'Late drop', product!, 8_000);
  const opens = Date.now() + 8_000;
  await submitDraft(it.demo, id);
  const admin = await it.page();
  await signIn(admin, it.demo, 'admin', `/operate/sales/${id}`);
  await saleStatus(admin, 'In review').waitFor();
  const approve = async (): Promise<string> => {
    await admin.getByRole('main').getByRole('button', { name: 'Approve', exact: true }).click();
    await admin.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
    return admin.getByRole('dialog').getByRole('alert').innerText();
  };
  await admin.waitForFunction((at) => Date.now() > at, opens + 1_000);
  expect(await approve()).toBe('Its start has passed; set another first.');
});
