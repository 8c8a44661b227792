/** The editor of a new sale or a draft. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { Fault } from '@seckill/client/fault';
import type { Item, Money } from '@seckill/client/types';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { CreateSale, AdminSale as AdminSaleDoc, GoodsList, UpdateSale } from '../documents/operator';
import { EarlierPrices } from '../documents/earlier-prices';
import { bounded } from '../forms/bounded';
import { money } from '../i18n/text';
import type { Previewed } from '../pages/sale-preview';
import { FaultMessage, Loading, SaleNotFound, Title } from '../ui/bits';
import { Icon } from '../ui/icons';
import { Select } from '../ui/select';
import { AccessFields, accessOf } from './access';
import { instant, type AdminSale } from './acts';
import { Field, Form, Restored, valuesOf, type Values } from './form';
import { Pick, type Found } from './pick';
import { Preview } from './preview';
import { priceWarning } from './price';
import { RulesField } from './rules-field';
import { Accent, Times } from './sale-fields';
import { ot } from './texts';
import { forget, keep, unsentRows, useUnsent } from './unsent';

/** A line of the form: one item. */
interface Row {
  key: number;
  goodsId?: string;
  /** The name of the product, and the currency of its price. */
  name?: string;
  currency?: string;
  price?: string;
  stock?: number;
  limit?: number;
}

const HOUR_MS = 3_600_000;
const MAX_ITEMS = 20;
/** Time after the last letter before the preview shows it, in ms. */
const DRAW_MS = 300;

/** A product as the preview shows it. */
type Product = Omit<Item['goods'], 'description'>;

/** The products that were shown, by their ids. */
const products = new Map<string, Product>();

/** The newest products whose names contain a text. */
async function findGoods(search: string, signal: AbortSignal): Promise<Found> {
  const { goods } = await request(GoodsList, { after: null, search: search || null }, signal);
  const nodes = goods?.edges.map(({ node }) => node) ?? [];
  for (const node of nodes) products.set(node.id, node);
  return { choices: nodes.map(({ id, name }) => ({ value: id, label: name })), more: goods?.pageInfo.hasNextPage ?? false };
}

/** The page; with an id, that of a draft. */
export function SaleEditor({ id }: { id?: string }) {
  const discards = useSignal(0);
  const { page, reload } = useLoad(`editor ${id}`, async (signal) => {
    const [goods, sale] = await Promise.all([
      findGoods('', signal),
      id ? request(AdminSaleDoc, { id }, signal).then((answer) => answer.sale) : null,
    ]);
    return { goods, sale };
  }, true);
  if (page.value.state === 'failed') return <FaultMessage fault={page.value.fault} again={reload} />;
  if (page.value.state !== 'ready') return <Loading />;
  const { goods, sale } = page.value.data;
  if (id && !sale) return <SaleNotFound again={reload} />; // an empty form would create another sale
  const discard = (): void => {
    forget('sale');
    discards.value++;
  };
  return <SaleForm key={`${id} ${discards.value}`} goods={goods} sale={sale} discard={discard} />;
}

function SaleForm({ goods, sale, discard }: { goods: Found; sale: AdminSale | null; discard: () => void }) {
  const [, go] = useLocation();
  const rows = useSignal<Row[]>(
    sale?.items.map((item, key) => ({ key, goodsId: item.goods.id, name: item.goods.name, currency: item.price.currencyCode, price: item.price.amount, stock: item.stock.total ?? 1, limit: item.purchaseLimit })) ?? unsentRows<Row>() ?? [{ key: 0 }],
  );
  const box = useRef<HTMLDivElement>(null);
  const form = (): HTMLFormElement | null | undefined => box.current?.querySelector('form');
  const restored = useUnsent('sale', form, sale === null);
  for (const { goods: each } of sale?.items ?? []) products.set(each.id, each);
  const earlier = useEarlier(sale?.id);
  /** The values of the form as the preview has them. */
  const drawn = useSignal<Values | null>(null);
  const drawing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const draw = (): void => {
    clearTimeout(drawing.current);
    drawing.current = setTimeout(() => (drawn.value = valuesOf(form()!)), DRAW_MS);
  };
  useEffect(() => (draw(), () => clearTimeout(drawing.current)), [rows.value]);
  /** Keeps the form of a new sale; a draft is on the server. */
  const keepForm = (): void => {
    draw();
    const of = form();
    if (sale || !of) return;
    keep('sale', of, rows.peek().map(({ key, ...row }): Row => {
      const chosen = of.elements.namedItem(`goods-${key}`);
      if (!(chosen instanceof HTMLSelectElement) || !chosen.value) return { key };
      const currency = products.get(chosen.value)?.listPrice.currencyCode ?? row.currency;
      return { key, goodsId: chosen.value, name: chosen.selectedOptions[0]?.text ?? '', ...(currency && { currency }) };
    }));
  };
  const made = useSignal(sale?.id ?? '');
  /** The revision that is edited: the draft may be reloaded meanwhile. */
  const known = useRef(sale?.revision);

  const send = async (of: Values) => {
    const input = {
      title: of['title']!,
      slug: of['slug'] || null,
      startsAt: instant(of['starts'], sale?.startsAt),
      endsAt: instant(of['ends'], sale?.endsAt),
      purchaseLimit: of['limit'] ? Number(of['limit']) : null,
      ...(of['window'] && { paymentWindowSeconds: Math.round(Number(of['window']) * 60) }),
      rules: of['rules']!,
      hideExactStock: 'hide' in of,
      private: 'private' in of,
      requiresAddress: 'address' in of,
      draw: of['mode'] === 'DRAW' ? { entrySeconds: Math.round(Number(of['entry']) * 60), offerSeconds: Math.round(Number(of['offer']) * 60), authorizeEntries: of['authorize'] === 'on' } : null,
      accent: of['accent'] || null,
      requireVerifiedContact: 'contact' in of,
      minimumAccountAge: Number(of['age'] || 0),
      access: accessOf(of),
      limitBy: ['ACCOUNT' as const, ...limitKinds.filter((kind) => `limit-by-${kind.toLowerCase()}` in of)],
      items: rows.peek().map(({ key, goodsId: former, currency }) => {
        const goodsId = of[`goods-${key}`]!;
        const currencyCode = (goodsId === former ? currency : products.get(goodsId)?.listPrice.currencyCode)!;
        const purchaseLimit = Number(of[`limit-${key}`]);
        return { goodsId, purchaseLimit, stock: Number(of[`stock-${key}`]), price: { amount: of[`price-${key}`]!, currencyCode } };
      }),
    };
    if (sale) {
      const { sale: now } = await request(AdminSaleDoc, { id: sale.id });
      if (now && now.revision !== known.current) {
        known.current = now.revision;
        throw new Fault('CHANGED_MEANWHILE', '');
      }
    }
    const payload = sale
      ? (await request(UpdateSale, { input: { ...input, saleId: sale.id } })).updateSale
      : (await request(CreateSale, { input })).createSale;
    if (payload?.sale) {
      made.value = payload.sale.id;
      forget('sale');
    }
    return payload?.userErrors;
  };

  const soon = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  const times = sale ?? { startsAt: new Date(soon + HOUR_MS).toISOString(), endsAt: new Date(soon + 3 * HOUR_MS).toISOString() };
  const add = (): void => void (rows.value = [...rows.value, { key: Math.max(...rows.value.map(({ key }) => key)) + 1 }]);
  return (
    <div ref={box} class="mx-auto grid max-w-3xl grid-cols-1 items-start gap-6 xl:max-w-none xl:grid-cols-[minmax(0,1fr)_29rem]" onInput={keepForm} onChange={keepForm}>
    <Form sticky class="grid grid-cols-1 gap-5" send={send} done={() => go(`/operate/sales/${made.value}`)} label={ot('op.save')}>
      <Title><bdi>{sale ? sale.title : ot('op.newSale')}</bdi></Title>
      <div class="card grid items-end gap-4 p-5 sm:grid-cols-2">
        <Field label={ot('op.saleTitle')}>
          <input name="title" class="field font-normal" required ref={bounded({ most: 120 })} defaultValue={sale?.title} />
        </Field>
        <Field label={ot('op.slug')}>
          <input name="slug" class="field font-normal" pattern="[a-z0-9]+(-[a-z0-9]+)*" placeholder="spring-sale" ref={bounded({ most: 64 })} defaultValue={sale?.slug} />
        </Field>
        <Times sale={times} />
        <Field label={ot('op.saleLimit')}>
          <input name="limit" class="field font-normal" type="number" min="1" max="200" defaultValue={sale?.purchaseLimit ?? undefined} />
        </Field>
        <Field label={ot(sale ? 'op.window' : 'op.windowOptional')}>
          <input
            name="window"
            class="field font-normal"
            type="number"
            min="0.5"
            max="1440"
            step="0.5"
            required={sale !== null}
            defaultValue={sale ? sale.paymentWindowSeconds / 60 : undefined}
          />
        </Field>
        <div class="sm:col-span-2">
          <RulesField text={sale?.rules} rows={4} />
        </div>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="hide" class="size-4 accent-ink" defaultChecked={sale?.hideExactStock ?? false} />
          {ot('op.hide')}
        </label>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="address" class="size-4 accent-ink" defaultChecked={sale?.requiresAddress} />
          {ot('op.address')}
        </label>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="contact" class="size-4 accent-ink" defaultChecked={sale?.requireVerifiedContact} />
          {ot('op.contact')}
        </label>
        <Field label={ot('op.accountAge')}>
          <input name="age" class="field font-normal" type="number" min="0" max="87600" defaultValue={sale?.minimumAccountAge || undefined} />
        </Field>
        <Mode sale={sale} />
        <LimitBy counted={sale?.limitBy ?? ['CONTACT']} />
        <AccessFields rules={sale?.access ?? []} />
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="private" class="size-4 accent-ink" defaultChecked={sale?.private} />
          {ot('op.private')}
        </label>
        <Accent color={sale?.accent?.color ?? ''} />
      </div>
      {restored && <Restored discard={discard} />}
      {rows.value.map((row, i) => (
        <ItemRow
          key={row.key}
          row={row}
          name={ot('op.item', { n: i + 1 })}
          goods={goods}
          earlier={earlier}
          remove={rows.value.length > 1 ? () => (rows.value = rows.value.filter(({ key }) => key !== row.key)) : null}
        />
      ))}
      {rows.value.length < MAX_ITEMS && (
        <button type="button" class="btn justify-self-start" onClick={add}>
          {ot('op.addItem')}
        </button>
      )}
    </Form>
    {drawn.value && <Preview beside sale={previewOf(drawn.value, rows.value, sale)} hidden={'hide' in drawn.value} />}
    </div>
  );
}

/** The sale that a form describes, for its preview. */
function previewOf(of: Values, rows: readonly Row[], sale: AdminSale | null): Previewed {
  const iso = (text: string | undefined): string => new Date(text || Date.now() + HOUR_MS).toISOString();
  const [startsAt, endsAt] = [iso(of['starts']), iso(of['ends'])];
  const items = rows.flatMap(({ key }) => {
    const goods = products.get(of[`goods-${key}`] ?? '');
    if (!goods) return [];
    const total = Number(of[`stock-${key}`] || 1);
    const stock = { level: 'PLENTY' as const, remaining: total, total, revision: 0, updatedAt: endsAt };
    const price = { currencyCode: goods.listPrice.currencyCode, amount: priceIn(of[`price-${key}`]) ?? goods.listPrice.amount };
    return [{ id: `row-${key}`, price, stock, purchaseLimit: Number(of[`limit-${key}`] || 1), drawing: null, goods: { description: '', ...goods } }];
  });
  return {
    id: sale?.id ?? '', slug: '', title: of['title'] || ot('op.newSale'), startsAt, endsAt, nextTransitionAt: null, revision: 0, mode: 'RUSH', entriesCloseAt: null, authorizesEntries: false, notice: null, access: [], items,
    purchaseLimit: of['limit'] ? Number(of['limit']) : null, paymentWindowSeconds: Math.round(Number(of['window'] || 15) * 60), requiresAddress: 'address' in of, limitBy: ['ACCOUNT'],
    rules: of['rules'] ?? '', accent: sale?.accent ?? null, requireVerifiedContact: 'contact' in of, minimumAccountAge: Number(of['age'] || 0),
  };
}

/** A typed price; null where it is none. */
const priceIn = (text = ''): string | null => (/^\d+(\.\d+)?$/.test(text) ? text : null);

/** The prices of products in the latest other sales, by the ids of the products. */
function useEarlier(except: string | undefined): ReadonlyMap<string, Money> {
  const { page } = useLoad('earlier prices', async (signal) => (await request(EarlierPrices, {}, signal)).sales?.nodes ?? []);
  const prices = new Map<string, Money>();
  if (page.value.state !== 'ready') return prices;
  for (const { id, items } of page.value.data) for (const { goods, price } of items) if (id !== except && !prices.has(goods.id)) prices.set(goods.id, price);
  return prices;
}

function ItemRow({ row, name, goods, earlier, remove }: { row: Row; name: string; goods: Found; earlier: ReadonlyMap<string, Money>; remove: (() => void) | null }) {
  const typed = useSignal({ goodsId: row.goodsId ?? '', amount: row.price ?? '' });
  const read = ({ currentTarget }: { currentTarget: HTMLElement }): void => {
    const value = (of: string): string => currentTarget.querySelector<HTMLInputElement | HTMLSelectElement>(`[name=${of}-${row.key}]`)!.value;
    typed.value = { goodsId: value('goods'), amount: value('price') };
  };
  const list = products.get(typed.value.goodsId)?.listPrice;
  const amount = priceIn(typed.value.amount);
  const before = earlier.get(typed.value.goodsId);
  const warning = list && amount && priceWarning({ amount, currencyCode: list.currencyCode }, list, before && { price: before, words: money(before) });
  return (
    <fieldset class="card grid items-end gap-4 p-5 sm:grid-cols-[2fr_1fr_1fr_1fr_auto]" onInput={read} onChange={read}>
      <legend class="float-left font-semibold sm:col-span-5">{name}</legend>
      <Pick
        label={ot('op.goodsOf')}
        findLabel={ot('op.pick.goods')}
        list="goods"
        first={goods}
        find={findGoods}
        name={`goods-${row.key}`}
        value={row.goodsId ?? ''}
        kept={row.name}
        required
      />
      <Field label={ot('op.price')}>
        <input name={`price-${row.key}`} class="field font-normal" type="number" min="0" step="any" required defaultValue={row.price} />
      </Field>
      <Field label={ot('op.stock')}>
        <input name={`stock-${row.key}`} class="field font-normal" type="number" min="1" max="10000000" required defaultValue={row.stock} />
      </Field>
      <Field label={ot('op.limit')}>
        <input name={`limit-${row.key}`} class="field font-normal" type="number" min="1" max="10" required defaultValue={row.limit ?? 1} />
      </Field>
      {remove && (
        <button type="button" class="icon-btn" aria-label={ot('op.removeItem', { name })} onClick={remove}>
          <Icon name="close" />
        </button>
      )}
      <p class="text-sm font-medium text-warn empty:hidden sm:col-span-full" role="status">
        {warning}
      </p>
    </fieldset>
  );
}

/** How the sale gives out its units, and the times of a draw in minutes, which a draw alone shows. */
function Mode({ sale }: { sale: AdminSale | null }) {
  const { mode = 'RUSH', startsAt, entriesCloseAt = null, offerSeconds = null, authorizesEntries = false } = sale ?? {};
  const entry = entriesCloseAt ? (Date.parse(entriesCloseAt) - Date.parse(startsAt!)) / 60_000 : 60;
  const minutes = (name: string, value: number, most: number) => (
    <input name={name} class="field font-normal" type="number" min="1" max={most} step="any" defaultValue={value} />
  );
  return (
    <div class="group grid gap-4 sm:col-span-2 sm:grid-cols-2">
      <div class="sm:col-span-2">
        <Field label={ot('op.mode')}>
          <Select name="mode" value={mode} choices={(['RUSH', 'DRAW'] as const).map((value) => ({ value, label: ot(`op.mode.${value}`) }))} />
        </Field>
      </div>
      <div class="hidden group-has-[option[value=DRAW]:checked]:block">
        <Field label={ot('op.entry')}>{minutes('entry', entry, 129_600)}</Field>
      </div>
      <div class="hidden group-has-[option[value=DRAW]:checked]:block">
        <Field label={ot('op.offer')}>{minutes('offer', (offerSeconds ?? 86_400) / 60, 20_160)}</Field>
      </div>
      <label class="hidden items-start gap-2 group-has-[option[value=DRAW]:checked]:flex sm:col-span-2">
        <input type="checkbox" name="authorize" class="mt-1 size-4 accent-ink" defaultChecked={authorizesEntries} />
        <span>
          {ot('op.authorize')}
          <span class="block text-sm text-soft">{ot('op.authorize.help')}</span>
        </span>
      </label>
    </div>
  );
}

/** What the limits of a sale may count beside the account. */
const limitKinds = ['CONTACT', 'ADDRESS', 'PAYMENT'] as const;

function LimitBy({ counted }: { counted: readonly string[] }) {
  return (
    <fieldset class="grid gap-2 sm:col-span-2">
      <legend class="font-semibold">{ot('op.limitBy')}</legend>
      {limitKinds.map((kind) => (
        <label class="flex items-start gap-2">
          <input type="checkbox" name={`limit-by-${kind.toLowerCase()}`} class="mt-1 size-4 accent-ink" defaultChecked={counted.includes(kind)} />
          <span>
            {ot(`op.limitBy.${kind}`)}
            <span class="block text-sm text-soft">{ot(`op.limitBy.${kind}.help`)}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
