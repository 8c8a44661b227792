import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { prepare } from '../src/operator';
import { SaleEditor } from '../src/operator/editor';
import { Goods } from '../src/operator/goods';
import { Orders } from '../src/operator/orders';
import { mark } from '../src/operator/rules-field';
import { sale, server } from './shop';

afterEach(() => {
  render(null, document.body);
  history.replaceState(null, '', '/');
  vi.unstubAllGlobals();
});

const none = { edges: [], pageInfo: { hasNextPage: false, endCursor: null } };
const shown = (): string => document.body.textContent!;
const type = (name: string, value: string): void => {
  const field = document.querySelector<HTMLInputElement>(`[name=${name}]`)!;
  field.value = value;
  field.dispatchEvent(new Event('input', { bubbles: true }));
};
/** Fills the fields that a form requires. */
const fill = (fields: Record<string, string>): Promise<void> => act(() => Object.entries(fields).forEach(([name, value]) => type(name, value)));
const submit = (form: string): Promise<void> =>
  act(() => void document.querySelector(form)!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));

test('a draft that another operator changed meanwhile is not overwritten without a warning', async () => {
  await setLanguage('en');
  await prepare();
  const [startsAt, endsAt] = [1, 2].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString()) as [string, string];
  const draft = (revision: number) => ({ sale: { ...sale({ revision, startsAt, endsAt }), status: 'DRAFT', timeline: [] } });
  const saved = { updateSale: { sale: null, userErrors: [{ code: 'NOT_FOUND', message: '', path: null }] } };
  const asked = server({ GoodsList: [{ goods: none }], AdminSale: [draft(1), draft(2), draft(2)], UpdateSale: [saved] });
  await act(() => render(<SaleEditor id="sal_1" />, document.body));
  await vi.waitFor(() => expect(document.querySelector('[name=title]')).not.toBeNull());
  type('title', 'Mine');
  await submit('form');
  await vi.waitFor(() => expect(shown()).toContain('Someone else changed this'));
  expect(asked.map(({ name }) => name)).not.toContain('UpdateSale');
  expect(document.querySelector<HTMLInputElement>('[name=title]')!.value).toBe('Mine');
  await submit('form');
  await vi.waitFor(() => expect(asked.at(-1)!.name).toBe('UpdateSale'));
});

test('saving a product waits for the upload of its picture', async () => {
  await setLanguage('en');
  await prepare();
  const asked = server({ GoodsList: [{ goods: none }, { goods: none }], CreateGoods: [{ createGoods: { goods: null, userErrors: [] } }] });
  const answers = fetch;
  let arrive = (): void => {};
  vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
    url === '/media/' ? new Promise<Response>((done) => (arrive = () => done(Response.json({ url: '/media/one.png' })))) : answers(url, init),
  );
  await act(() => render(<Goods />, document.body));
  await act(() => document.querySelector<HTMLElement>('button.btn-main')!.click());
  const file = document.querySelector<HTMLInputElement>('[type=file]')!;
  Object.defineProperty(file, 'files', { value: [new File(['x'], 'one.png')] });
  await act(() => void file.dispatchEvent(new Event('change', { bubbles: true })));
  await fill({ name: 'Lamp', price: '9' });
  await submit('dialog form');
  expect(asked.map(({ name }) => name)).not.toContain('CreateGoods');
  arrive();
  await vi.waitFor(() => expect(asked.find(({ name }) => name === 'CreateGoods')?.variables.input['imageUrl']).toBe('/media/one.png'));
});

test('a price keeps the decimals of its currency when a product is edited', async () => {
  await setLanguage('en');
  await prepare();
  const node = { id: 'gds_1', name: 'Lamp', description: '', imageUrl: null, imageAlt: null, listPrice: { amount: '1.234', currencyCode: 'KWD' } };
  const done = { updateGoods: { goods: null, userErrors: [] } };
  const list = { goods: { ...none, edges: [{ node }] } };
  history.replaceState(null, '', '/?q=lamp'); // no other test has this list
  const asked = server({ GoodsList: [list, list], UpdateGoods: [done], GoodsLog: [{ node: null }] });
  await act(() => render(<Goods />, document.body));
  await vi.waitFor(() => expect(document.querySelector('li button')).not.toBeNull());
  await act(() => document.querySelector<HTMLElement>('li button')!.click());
  expect(document.querySelector<HTMLFormElement>('dialog form')!.checkValidity()).toBe(true);
  await act(() => type('price', '1.235'));
  await submit('dialog form');
  await vi.waitFor(() => expect(asked.find(({ name }) => name === 'UpdateGoods')?.variables.input['listPrice']).toEqual({ amount: '1.235', currencyCode: 'KWD' }));
});

test('the alternative text of a picture is counted in characters, sent with the form and removed by an empty field', async () => {
  await setLanguage('en');
  await prepare();
  const money = { amount: '59.00', currencyCode: 'CNY' };
  const node = { id: 'gds_1', name: 'Lamp', description: '', imageUrl: '/media/lamp.png', imageAlt: 'A red lamp', listPrice: money };
  const list = { goods: { ...none, edges: [{ node }] } };
  const done = { updateGoods: { goods: null, userErrors: [] } };
  const asked = server({ GoodsList: [list, list, list], UpdateGoods: [done, done], GoodsLog: [{ node: null }, { node: null }] });
  const sent = (): unknown[] => asked.filter(({ name }) => name === 'UpdateGoods').map(({ variables }) => variables.input['imageAlt']);
  const open = async (): Promise<HTMLTextAreaElement> => {
    await vi.waitFor(() => expect(document.querySelector('li button')).not.toBeNull());
    await act(() => document.querySelector<HTMLElement>('li button')!.click());
    return document.querySelector<HTMLTextAreaElement>('[name=imageAlt]')!;
  };
  await act(() => render(<Goods />, document.body));
  const field = await open();
  const described = (): string => field.getAttribute('aria-describedby')!.split(' ').map((id) => document.getElementById(id)!.textContent).join(' ');
  expect(field.value).toBe('A red lamp');
  expect(described()).toMatch(/What should readers know without seeing the image.*10 of 200 characters/);
  await act(() => type('imageAlt', '灯'.repeat(200) + '💡'));
  expect(described()).toContain('201 of 200 characters');
  expect(field.getAttribute('aria-invalid')).toBe('true');
  await act(() => type('imageAlt', ' A lamp that is lit 💡 '));
  expect(described()).toContain('20 of 200 characters');
  expect(field.getAttribute('aria-invalid')).toBeNull();
  await submit('dialog form');
  await vi.waitFor(() => expect(sent()).toEqual(['A lamp that is lit 💡']));
  await vi.waitFor(() => expect(document.querySelector('dialog')).toBeNull());
  await open();
  await act(() => type('imageAlt', ''));
  await submit('dialog form');
  await vi.waitFor(() => expect(sent()).toEqual(['A lamp that is lit 💡', '']));
});

test('what orders are searched for stands in the address, with dates and the sort', async () => {
  await setLanguage('en');
  await prepare();
  history.replaceState(null, '', '/operate/orders?q=thing&status=PAID&sale=sal_1&from=2026-11-20&sort=oldest');
  const order = (number: string, status: string) => ({
    id: number,
    number,
    status,
    item: { goods: { name: 'Thing' } },
    buyer: { account: null, displayName: 'A' },
    createdAt: '2026-11-20T12:00:00.000Z',
    total: { amount: '1.00', currencyCode: 'CNY' },
    refunds: [],
  });
  const asked = server({ AdminOrders: [{ orders: { edges: [{ node: order('No 1', 'PAID') }], pageInfo: { hasNextPage: false, endCursor: null } } }] });
  await act(() => render(<Orders />, document.body));
  await vi.waitFor(() => expect(shown()).toContain('No 1'));
  const createdFrom = new Date('2026-11-20T00:00:00').toISOString();
  const orders = asked.find(({ name }) => name === 'AdminOrders')!;
  expect(orders.variables).toMatchObject({ filter: { search: 'thing', statuses: ['PAID'], saleId: 'sal_1', createdFrom }, orderBy: { direction: 'ASC' } });
  expect(document.querySelector<HTMLInputElement>('[type=search]')!.value).toBe('thing');
});

test('the form of a new sale is kept until the sale is created, and can be begun again', async () => {
  await setLanguage('en');
  await prepare();
  const goods = { edges: [{ node: { id: 'gds_1', name: 'Lamp', description: '', imageUrl: null, imageAlt: null, listPrice: { amount: '9.00', currencyCode: 'CNY' } } }], pageInfo: none.pageInfo };
  const created = { createSale: { sale: { id: 'sal_9' }, userErrors: [] } };
  server({ GoodsList: [1, 2, 3, 4].map(() => ({ goods })), CreateSale: [created] });
  const field = (name: string): HTMLInputElement => document.querySelector<HTMLInputElement>(`[name=${name}]`)!;
  const open = async (): Promise<void> => {
    render(null, document.body);
    await act(() => render(<SaleEditor />, document.body));
    await vi.waitFor(() => expect(field('title')).not.toBeNull());
  };
  await open();
  expect(shown()).not.toContain('was restored');
  await act(() => {
    type('title', 'Lamps');
    type('price-0', '7.50');
    field('goods-0').value = 'gds_1';
    field('goods-0').dispatchEvent(new Event('change', { bubbles: true }));
    field('address').checked = true;
    field('address').dispatchEvent(new Event('change', { bubbles: true }));
  });
  await open();
  expect(shown()).toContain('was restored');
  expect([field('title').value, field('price-0').value, field('goods-0').value, field('address').checked]).toEqual(['Lamps', '7.50', 'gds_1', true]);
  await act(() => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Begin again')!.click());
  expect([field('title').value, field('address').checked]).toEqual(['', false]);
  await act(() => {
    field('goods-0').value = 'gds_1';
    field('goods-0').dispatchEvent(new Event('change', { bubbles: true }));
  });
  await submit('form');
  expect(shown()).toContain('Fill in this field.');
  await fill({ title: 'Lamps', 'price-0': '9', 'stock-0': '5' });
  expect(document.querySelector('fieldset [role=status]')!.textContent).toBe('Price not below list price');
  await act(() => type('price-0', '7.50'));
  expect(document.querySelector('fieldset [role=status]')!.textContent).toBe('');
  await act(() => type('ends', '2020-01-01T00:00:00'));
  expect(shown()).toContain('Choose a time in the future');
  await act(() => type('ends', field('starts').value));
  expect(shown()).toContain('The end must be after the opening');
  await act(() => type('ends', field('starts').value.replace(/^\d+/, (year) => String(Number(year) + 1))));
  expect(shown()).not.toContain('The end must be after the opening');
  await submit('form');
  await vi.waitFor(() => expect(location.pathname).toBe('/operate/sales/sal_9'));
  await open();
  expect(field('title').value).toBe('');
});

test('a new product is kept until it is created, and can be begun again', async () => {
  await setLanguage('en');
  await prepare();
  server({ GoodsList: [{ goods: none }, { goods: none }, { goods: none }, { goods: none }], CreateGoods: [{ createGoods: { goods: { id: 'gds_1' }, userErrors: [] } }] });
  const name = (): string => document.querySelector<HTMLInputElement>('dialog [name=name]')!.value;
  const open = async (): Promise<void> => {
    render(null, document.body);
    await act(() => render(<Goods />, document.body));
    await act(() => document.querySelector<HTMLElement>('button.btn-main')!.click());
  };
  await open();
  await fill({ name: 'Lamp' });
  await open();
  expect([name(), shown().includes('was restored')]).toEqual(['Lamp', true]);
  await act(() => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Begin again')!.click());
  expect(name()).toBe('');
  await fill({ name: 'Lamp', price: '9' });
  await submit('dialog form');
  await vi.waitFor(() => expect(document.querySelector('dialog')).toBeNull());
  await open();
  expect([name(), shown().includes('was restored')]).toEqual(['', false]);
});

test('marks of the rules surround a selection or begin its lines, and a second press removes them', () => {
  document.body.innerHTML = '<textarea>one\ntwo</textarea>';
  const field = document.querySelector('textarea')!;
  field.setSelectionRange(0, 3);
  mark(field, ['**', '**']);
  expect(field.value).toBe('**one**\ntwo');
  mark(field, ['**', '**']);
  expect(field.value).toBe('one\ntwo');
  field.setSelectionRange(1, 5);
  mark(field, ['- ']);
  expect(field.value).toBe('- one\n- two');
  mark(field, ['- ']);
  expect(field.value).toBe('one\ntwo');
});
