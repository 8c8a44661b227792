/** A new sale, as a draft. */
import { useSignal } from '@preact/signals';
import { useLocation } from 'wouter-preact';
import { toFault } from '../api/fault';
import { useLoad } from '../api/load';
import { request } from '../api/request';
import { CreateSale, GoodsList } from '../documents/operator';
import { apologise, explain } from '../i18n/text';
import { Loading, Title } from '../ui/bits';
import { Icon } from '../ui/icons';
import { decimal, Field, values } from './form';
import { ot } from './texts';

interface Row {
  key: number;
  goodsId: string;
}

const HOUR_MS = 3_600_000;
const MAX_ITEMS = 20;

/** An instant as a field of date and time shows it, in the person's zone. */
export function localInput(ms: number): string {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return at.toISOString().slice(0, 16);
}

/** The page. */
export function SaleEditor() {
  const [, go] = useLocation();
  const rows = useSignal<Row[]>([{ key: 0, goodsId: '' }]);
  const why = useSignal<string | null>(null);
  const { page } = useLoad('goods to sell', async (signal) => (await request(GoodsList, { after: null, search: null }, signal)).goods);
  if (page.value.state !== 'ready') return <Loading />;
  const goods = page.value.data.edges.map(({ node }) => node);

  const send = async (form: HTMLFormElement): Promise<void> => {
    const of = values(form);
    const currencyOf = (id: string): string => goods.find((each) => each.id === id)?.listPrice.currencyCode ?? 'CNY';
    try {
      const { createSale } = await request(CreateSale, {
        input: {
          title: of['title']!,
          slug: of['slug'] || null,
          startsAt: new Date(of['starts']!).toISOString(),
          endsAt: new Date(of['ends']!).toISOString(),
          purchaseLimit: Number(of['limit']),
          paymentWindowSeconds: Number(of['window']) * 60,
          rules: of['rules']!,
          hideExactStock: 'hide' in of,
          items: rows.peek().map(({ key }) => ({
            goodsId: of[`goods-${key}`]!,
            stock: Number(of[`stock-${key}`]),
            price: { amount: decimal(of[`price-${key}`]!), currencyCode: currencyOf(of[`goods-${key}`]!) },
          })),
        },
      });
      if (createSale?.sale) return go(`/operate/sales/${createSale.sale.id}`);
      const failure = createSale?.userErrors[0];
      why.value = failure ? [explain(failure), failure.path?.slice(1).join(' ')].filter(Boolean).join(' · ') : null;
    } catch (thrown) {
      why.value = apologise(toFault(thrown));
    }
  };

  const soon = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  const add = (): void => void (rows.value = [...rows.value, { key: Math.max(...rows.value.map(({ key }) => key)) + 1, goodsId: '' }]);
  return (
    <form
      class="mx-auto grid max-w-3xl gap-5"
      onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}
    >
      <Title>{ot('op.newSale')}</Title>
      <div class="card grid gap-4 p-5 sm:grid-cols-2">
        <Field label={ot('op.saleTitle')}>
          <input name="title" class="field font-normal" required maxLength={120} />
        </Field>
        <Field label={ot('op.slug')}>
          <input name="slug" class="field font-normal" pattern="[a-z0-9]+(-[a-z0-9]+)*" maxLength={64} />
        </Field>
        <Field label={ot('op.starts')}>
          <input name="starts" class="field font-normal" type="datetime-local" required defaultValue={localInput(soon + HOUR_MS)} />
        </Field>
        <Field label={ot('op.ends')}>
          <input name="ends" class="field font-normal" type="datetime-local" required defaultValue={localInput(soon + 3 * HOUR_MS)} />
        </Field>
        <p class="text-sm text-soft sm:col-span-2">{ot('op.local', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone })}</p>
        <Field label={ot('op.limit')}>
          <input name="limit" class="field font-normal" type="number" min="1" max="100" required defaultValue="1" />
        </Field>
        <Field label={ot('op.window')}>
          <input name="window" class="field font-normal" type="number" min="0.5" max="1440" step="0.5" required defaultValue="15" />
        </Field>
        <div class="sm:col-span-2">
          <Field label={ot('op.rules')}>
            <textarea name="rules" class="field font-normal" rows={3} maxLength={10000} />
          </Field>
        </div>
        <label class="flex items-center gap-2 sm:col-span-2">
          <input type="checkbox" name="hide" class="size-4 accent-fill" />
          {ot('op.hide')}
        </label>
      </div>
      {rows.value.map((row, i) => (
        <fieldset key={row.key} class="card grid items-end gap-4 p-5 sm:grid-cols-[2fr_1fr_1fr_auto]">
          <legend class="float-left font-semibold sm:col-span-4">{ot('op.item', { n: i + 1 })}</legend>
          <Field label={ot('op.goodsOf')}>
            <select name={`goods-${row.key}`} class="field font-normal" required>
              {goods.map((each) => (
                <option key={each.id} value={each.id}>
                  {each.name}
                </option>
              ))}
            </select>
          </Field>
          <Field label={ot('op.price')}>
            <input name={`price-${row.key}`} class="field font-normal" type="number" min="0.01" step="0.01" required />
          </Field>
          <Field label={ot('op.stock')}>
            <input name={`stock-${row.key}`} class="field font-normal" type="number" min="1" max="10000000" required />
          </Field>
          <button
            type="button"
            class="icon-btn"
            disabled={rows.value.length === 1}
            aria-label={ot('op.removeItem', { name: ot('op.item', { n: i + 1 }) })}
            onClick={() => (rows.value = rows.value.filter(({ key }) => key !== row.key))}
          >
            <Icon name="close" />
          </button>
        </fieldset>
      ))}
      {rows.value.length < MAX_ITEMS && (
        <button type="button" class="btn justify-self-start" onClick={add}>
          {ot('op.addItem')}
        </button>
      )}
      {why.value && (
        <p class="note font-medium text-warn" role="alert">
          {why.value}
        </p>
      )}
      <button class="btn btn-main min-h-12">{ot('op.save')}</button>
    </form>
  );
}
