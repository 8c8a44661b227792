/** Lists that are longer than one page of the API: nothing in them is out of reach, and nothing else takes its place. */
import { expect, test } from 'vitest';
import { createDraft, createProducts, productsOf } from './api';
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
  await page.getByLabel('Product', { exact: true }).locator('option', { hasText: 'Product B' }).waitFor({ state: 'attached' });
  await page.getByLabel('Product', { exact: true }).selectOption({ label: 'Product B' });
  await page.getByRole('button', { name: 'Save draft' }).click();
  await page.getByRole('link', { name: 'Edit' }).waitFor();
  expect(await productsOf(it.demo, id)).toEqual(['Product B']);
});
