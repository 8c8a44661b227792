/** The items of a sale, and the change of their stock. */
import { useSignal } from '@preact/signals';
import { stocks } from '../api/stores';
import { request } from '../api/client';
import { tabStore } from '../api/storage';
import type { Stock } from '@seckill/client/types';
import { AdjustStock } from '../documents/interventions';
import { count, money, t } from '../i18n/text';
import { actionKey, clearActionKey } from '@seckill/client/pending';
import { DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import type { AdminSale } from './acts';
import { acted } from './asked';
import { Drawing } from './drawing';
import { Field, Form, Note } from './form';
import { ot } from './texts';

/** States in which stock can be changed. */
const ADJUSTABLE = ['APPROVED', 'SCHEDULED', 'PREHEATED', 'LIVE', 'PAUSED'];

/** The items of a sale; `acted` is called after a request to change stock. */
export function Items({ sale, acted }: { sale: AdminSale; acted: () => void }) {
  const changing = useSignal<AdminSale['items'][number] | null>(null);
  return (
    <section class="card p-5">
      <h2 class="head mb-3">{ot('op.items')}</h2>
      <p class="mb-3 text-sm text-soft">
        <DateTime at={sale.startsAt} zone /> – <DateTime at={sale.endsAt} zone />
      </p>
      <div class="overflow-x-auto">
      <table class="w-full text-left">
        <thead class="text-sm text-soft">
          <tr>
            <th class="py-1 font-medium">{ot('op.name')}</th>
            <th class="py-1 pl-3 text-right font-medium wrap-normal">{ot('op.price')}</th>
            <th class="py-1 pl-3 text-right font-medium wrap-normal">{ot('op.left')}</th>
          </tr>
        </thead>
        <tbody>
          {sale.items.map((item) => (
            <Row key={item.id} item={item} change={ADJUSTABLE.includes(sale.status) ? () => (changing.value = item) : null} />
          ))}
        </tbody>
      </table>
      </div>
      {sale.items.flatMap(({ id, goods, drawing }) => (drawing ? <Drawing key={id} itemId={id} name={goods.name} drawing={drawing} asked={acted} /> : []))}
      {changing.value && <Adjust item={changing.value} close={() => (changing.value = null)} done={acted} />}
    </section>
  );
}

function Row({ item, change }: { item: AdminSale['items'][number]; change: (() => void) | null }) {
  const stock = newer(stocks.of(item.id).value, item.stock);
  return (
    <tr class="border-t border-line tabular-nums">
      <td class="min-w-24 py-2 wrap-anywhere">
        <bdi>{item.goods.name}</bdi>
        {change && (
          <button class="link block text-left text-sm" onClick={change}>
            {ot('op.adjust')}
            <span class="sr-only"> <bdi>{item.goods.name}</bdi></span>
          </button>
        )}
      </td>
      <td class="py-2 pl-3 text-right">{money(item.price)}</td>
      <td class="py-2 pl-3 text-right">
        {stock.remaining === null ? t(`stock.${stock.level}`) : count(stock.remaining)}
        {stock.total !== null && ` / ${count(stock.total)}`}
      </td>
    </tr>
  );
}

/** The newer of the pushed and the loaded stock. */
function newer(pushed: Stock | null, asked: Stock): Stock {
  return pushed && pushed.revision >= asked.revision ? pushed : asked;
}

function Adjust({ item, close, done }: { item: AdminSale['items'][number]; close: () => void; done: () => void }) {
  return (
    <Dialog title={ot('op.named', { name: ot('op.adjust'), text: item.goods.name })} close={close}>
      <Form
        label={ot('op.adjust')}
        send={async ({ units, note = '' }) => {
          const act = `stock ${units} ${note}`;
          const idempotencyKey = actionKey(tabStore, act, item.id);
          const input = { itemId: item.id, units: Number(units), note, idempotencyKey };
          const { adjustStock } = await request(AdjustStock, { input });
          clearActionKey(tabStore, act, item.id, idempotencyKey);
          if (adjustStock?.intervention) acted(adjustStock.intervention);
          return adjustStock?.userErrors[0];
        }}
        done={() => {
          close();
          done();
        }}
      >
        <p>{ot('op.adjustHow')}</p>
        <Field label={ot('op.units')}>
          <input name="units" class="field font-normal" type="number" min="-10000000" max="10000000" required />
        </Field>
        <Note label={ot('op.reason')} required />
      </Form>
    </Dialog>
  );
}
