/** The editor of a new sale or a draft. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { Fault } from '@seckill/client/fault';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { CreateSale, AdminSale as AdminSaleDoc, GoodsList, UpdateSale } from '../documents/operator';
import { bounded } from '../forms/bounded';
import { FaultMessage, Loading, SaleNotFound, Title } from '../ui/bits';
import { Icon } from '../ui/icons';
import { Select } from '../ui/select';
import { AccessFields, accessOf } from './access';
import { instant, type AdminSale } from './acts';
import { Accent, Field, Form, Times, type Values } from './form';
import { Pick, type Found } from './pick';
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

/** Currencies of the products that were shown, by their ids. */
const currencies = new Map<string, string>();

/** The newest products whose names contain a text. */
async function findGoods(search: string, signal: AbortSignal): Promise<Found> {
  const { goods } = await request(GoodsList, { after: null, search: search || null }, signal);
  const nodes = goods?.edges.map(({ node }) => node) ?? [];
  for (const { id, listPrice } of nodes) currencies.set(id, listPrice.currencyCode);
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
    forget();
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
  const restored = useUnsent(form, sale === null);
  /** Keeps the form of a new sale; a draft is on the server. */
  const keepForm = (): void => {
    const of = form();
    if (sale || !of) return;
    keep(of, rows.peek().map(({ key, ...row }): Row => {
      const chosen = of.elements.namedItem(`goods-${key}`);
      if (!(chosen instanceof HTMLSelectElement) || !chosen.value) return { key };
      const currency = currencies.get(chosen.value) ?? row.currency;
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
        const currencyCode = (goodsId === former ? currency : currencies.get(goodsId))!;
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
      forget();
    }
    return payload?.userErrors;
  };

  const soon = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  const times = sale ?? { startsAt: new Date(soon + HOUR_MS).toISOString(), endsAt: new Date(soon + 3 * HOUR_MS).toISOString() };
  const add = (): void => void (rows.value = [...rows.value, { key: Math.max(...rows.value.map(({ key }) => key)) + 1 }]);
  return (
    <div ref={box} onInput={keepForm} onChange={keepForm}>
    <Form sticky class="mx-auto grid max-w-3xl gap-5" send={send} done={() => go(`/operate/sales/${made.value}`)} label={ot('op.save')}>
      <Title><bdi>{sale ? sale.title : ot('op.newSale')}</bdi></Title>
      <div class="card grid gap-4 p-5 sm:grid-cols-2">
        <Field label={ot('op.saleTitle')}>
          <input name="title" class="field font-normal" required ref={bounded({ most: 120 })} defaultValue={sale?.title} />
        </Field>
        <Field label={ot('op.slug')}>
          <input name="slug" class="field font-normal" pattern="[a-z0-9]+(-[a-z0-9]+)*" ref={bounded({ most: 64 })} defaultValue={sale?.slug} />
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
          <Field label={ot('op.rules')}>
            <textarea name="rules" class="field font-normal" rows={3} ref={bounded({ most: 10_000 })} defaultValue={sale?.rules} />
          </Field>
        </div>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="hide" class="size-4 accent-fill" defaultChecked={sale?.hideExactStock ?? false} />
          {ot('op.hide')}
        </label>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="address" class="size-4 accent-fill" defaultChecked={sale?.requiresAddress} />
          {ot('op.address')}
        </label>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="contact" class="size-4 accent-fill" defaultChecked={sale?.requireVerifiedContact} />
          {ot('op.contact')}
        </label>
        <Field label={ot('op.accountAge')}>
          <input name="age" class="field font-normal" type="number" min="0" max="87600" defaultValue={sale?.minimumAccountAge || undefined} />
        </Field>
        <Mode sale={sale} />
        <LimitBy counted={sale?.limitBy ?? ['CONTACT']} />
        <AccessFields rules={sale?.access ?? []} />
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="private" class="size-4 accent-fill" defaultChecked={sale?.private} />
          {ot('op.private')}
        </label>
        <Accent color={sale?.accent?.color ?? ''} />
      </div>
      {restored && (
        <p class="note flex flex-wrap items-center gap-x-4 -order-1" role="status">
          {ot('op.unsent')}
          <button type="button" class="link" onClick={discard}>
            {ot('op.unsent.discard')}
          </button>
        </p>
      )}
      {rows.value.map((row, i) => (
        <ItemRow
          key={row.key}
          row={row}
          name={ot('op.item', { n: i + 1 })}
          goods={goods}
          remove={rows.value.length > 1 ? () => (rows.value = rows.value.filter(({ key }) => key !== row.key)) : null}
        />
      ))}
      {rows.value.length < MAX_ITEMS && (
        <button type="button" class="btn justify-self-start" onClick={add}>
          {ot('op.addItem')}
        </button>
      )}
    </Form>
    </div>
  );
}

function ItemRow({ row, name, goods, remove }: { row: Row; name: string; goods: Found; remove: (() => void) | null }) {
  return (
    <fieldset class="card grid items-end gap-4 p-5 sm:grid-cols-[2fr_1fr_1fr_1fr_auto]">
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
        <input type="checkbox" name="authorize" class="mt-1 size-4 accent-fill" defaultChecked={authorizesEntries} />
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
          <input type="checkbox" name={`limit-by-${kind.toLowerCase()}`} class="mt-1 size-4 accent-fill" defaultChecked={counted.includes(kind)} />
          <span>
            {ot(`op.limitBy.${kind}`)}
            <span class="block text-sm text-soft">{ot(`op.limitBy.${kind}.help`)}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
