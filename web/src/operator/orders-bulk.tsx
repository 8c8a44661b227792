/** Acts on several orders: the act of one order for each, one after another, with what failed. */
import { useSignal, type Signal } from '@preact/signals';
import { toFault } from '@seckill/client/fault';
import type { Failure } from '@seckill/client/types';
import { request } from '../api/client';
import { ReleaseOrder } from '../documents/bought';
import { ExpireOrder } from '../documents/interventions';
import { DecideRefund } from '../documents/operator';
import { count, explain, faultText, money, total } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { acted, type Asked } from './asked';
import { Form, Note, type Values } from './form';
import { askedRefund, type Found } from './orders';
import { ot, type OpKey } from './texts';

type Outcome = { failure: Failure | null | undefined; asked?: Asked | null | undefined };

interface Act {
  /** The words of its button and of the title of its dialog. */
  name: OpKey;
  how: OpKey;
  noteRequired: boolean;
  /** Whether the act applies to an order. */
  fits: (order: Found) => boolean;
  send: (order: Found, values: Values) => Promise<Outcome>;
}

const acts: Record<'refund' | 'release' | 'expire', Act> = {
  refund: {
    name: 'op.bulk.refund',
    how: 'op.bulk.refundHow',
    noteRequired: false,
    fits: (order) => askedRefund(order) !== undefined,
    send: async (order, { note, restock }) => {
      const { id: refundId, amount } = askedRefund(order)!;
      const { decideRefund } = await request(DecideRefund, { input: { refundId, approve: true, note: note || null, restock: restock !== undefined, amount } });
      return { failure: decideRefund?.userErrors[0], asked: decideRefund?.intervention };
    },
  },
  release: {
    name: 'op.bulk.release',
    how: 'op.bought.releaseHow',
    noteRequired: true,
    fits: ({ review }) => review?.held ?? false,
    send: async ({ id: orderId }, { note = '' }) => ({ failure: (await request(ReleaseOrder, { input: { orderId, note } })).releaseOrder?.userErrors[0] }),
  },
  expire: {
    name: 'op.bulk.expire',
    how: 'op.expireHow',
    noteRequired: true,
    fits: ({ status, review }) => status === 'PENDING_PAYMENT' && !review?.held,
    send: async ({ id: orderId }, { note = '' }) => ({ failure: (await request(ExpireOrder, { input: { orderId, note } })).expireOrder?.userErrors[0] }),
  },
};

interface Props {
  orders: Found[];
  chosen: Signal<ReadonlySet<string>>;
  reload: () => void;
}

/** What can be done with the chosen orders. */
export function Bulk({ orders, chosen, reload }: Props) {
  const open = useSignal<{ act: Act; orders: Found[] } | null>(null);
  const mine = orders.filter(({ id }) => chosen.value.has(id));
  return (
    <>
      {mine.length > 0 && (
        <div class="note sticky top-2 z-10 mb-3 flex flex-wrap items-center gap-3 py-2 shadow-lg sm:top-16" role="group" aria-label={ot('op.bulk.chosen', { n: count(mine.length) })}>
          <strong class="tabular-nums">{ot('op.bulk.chosen', { n: count(mine.length) })}</strong>
          {Object.entries(acts).map(([key, act]) => {
            const fitting = mine.filter(act.fits);
            return fitting.length > 0 && (
              <button key={key} class="btn" onClick={() => (open.value = { act, orders: fitting })}>
                {many(act.name, fitting.length)}
              </button>
            );
          })}
          <button class="link ml-auto" onClick={() => (chosen.value = new Set())}>
            {ot('op.bulk.none')}
          </button>
        </div>
      )}
      {open.value && <Acting {...open.value} chosen={chosen} close={() => (open.value = null)} reload={reload} />}
    </>
  );
}

/** A text with a number, in the singular where the language has one. */
const many = (key: OpKey, n: number): string => ot(n === 1 ? (`${key}.one` as OpKey) : key, { n: count(n) });

/** Confirms an act, runs it order by order, and lists what failed. */
function Acting({ act, orders, chosen, close, reload }: { act: Act; orders: Found[]; chosen: Props['chosen']; close: () => void; reload: () => void }) {
  const done = useSignal(0);
  const running = useSignal(false);
  const failed = useSignal<{ order: Found; why: () => string }[] | null>(null);
  const sum = total(orders.map((order) => askedRefund(order)?.amount ?? order.total));
  const run = async (values: Values): Promise<null> => {
    running.value = true;
    const wrong: { order: Found; why: () => string }[] = [];
    let asked: Asked | null | undefined;
    for (const order of orders) {
      try {
        const { failure, asked: request } = await act.send(order, values);
        asked ??= request;
        if (failure) wrong.push({ order, why: () => explain(failure) });
      } catch (thrown) {
        wrong.push({ order, why: () => faultText(toFault(thrown)) });
      }
      done.value++;
    }
    running.value = false;
    const left = new Set(wrong.map(({ order }) => order.id));
    const acts = new Set(orders.map(({ id }) => id));
    chosen.value = new Set([...chosen.value].filter((id) => left.has(id) || !acts.has(id)));
    if (asked) acted(asked);
    failed.value = wrong;
    return null;
  };
  const result = (): string => ot('op.bulk.done', { n: count(orders.length - (failed.value?.length ?? 0)), of: count(orders.length) });
  return (
    <Dialog title={many(act.name, orders.length)} close={() => running.value || close()}>
      {failed.value?.length ? (
        <div class="grid gap-3">
          <p class="font-medium text-warn" role="alert">{result()}</p>
          <ul class="grid max-h-60 gap-2 overflow-y-auto" tabIndex={0}>
            {failed.value.map(({ order, why }) => (
              <li key={order.id}><strong class="tabular-nums">{order.number}</strong> {why()}</li>
            ))}
          </ul>
          <p class="text-sm text-soft">{ot('op.bulk.failed')}</p>
        </div>
      ) : (
        <Form
          label={many(act.name, orders.length)}
          send={run}
          done={() => {
            reload();
            if (failed.value?.length) return;
            close();
            toast(result());
          }}
        >
          {sum && <p class="numeral text-2xl">{money(sum)}</p>}
          <p>{ot(act.how)}</p>
          {act === acts.refund && (
            <label class="flex items-center gap-2">
              <input type="checkbox" name="restock" class="size-4 accent-ink" defaultChecked />
              {ot('op.restock')}
            </label>
          )}
          <Note label={ot(act.noteRequired ? 'op.reason' : 'op.note')} required={act.noteRequired} />
          {running.value && <progress class="bar" value={done.value} max={orders.length} aria-label={ot('op.bulk.done', { n: count(done.value), of: count(orders.length) })} />}
        </Form>
      )}
    </Dialog>
  );
}
