/** All orders as a table: filters, one menu for each, acts on several, export of what is shown. */
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { useLoad } from '../api/load';
import type { Connection } from '../api/paged';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Failure, OrderStatus } from '@seckill/client/types';
import { ReleaseOrder } from '../documents/bought';
import { ExpireOrder, VoidOrder } from '../documents/interventions';
import { AdminOrders, AdminSales } from '../documents/operator';
import { count, isolate, moment, money, t, times } from '../i18n/text';
import { StatusChip } from '../pages/status';
import { Title, DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { Icon } from '../ui/icons';
import { acted } from './asked';
import { Field, Form, Note, type Values } from './form';
import { TableKeys } from './keys';
import { Bulk } from './orders-bulk';
import { Paged } from './paged';
import { Decide } from './refunds';
import { csv, save } from './save';
import { Search, useQuery } from './search';
import { Pick, type Found as Choices } from './pick';
import { ot, type OpKey } from './texts';
import { Select, upTo } from '../ui/select';
import { When } from './when';

/** An order of the table. */
export type Found = NonNullable<ResultOf<typeof AdminOrders>['orders']>['edges'][number]['node'];

/** The refund of an order that waits for a decision. */
export const askedRefund = ({ refunds }: Found) => refunds?.find(({ status }) => status === 'REQUESTED');

const statuses: OrderStatus[] = ['PENDING_PAYMENT', 'PAID', 'REFUNDING', 'REFUNDED', 'CANCELLED', 'EXPIRED'];
const SHORTEST_SEARCH = 2;

interface Choice {
  text: string;
  status: OrderStatus | '';
  /** The id of a sale; empty = of all sales. */
  saleId: string;
  /** The first and the last day, as date fields write them; empty = no bound. */
  from: string;
  until: string;
  oldest: boolean;
  /** The label of a cluster of the sale; empty = all orders. */
  cluster: string;
  held: boolean;
}

/** Midnight in the browser's time zone, `later` days after a day, as an ISO string. */
function midnight(day: string, later = 0): string {
  const at = new Date(`${day}T00:00:00`);
  at.setDate(at.getDate() + later);
  return at.toISOString();
}

async function ask({ text, status, saleId, from, until, oldest, cluster, held }: Choice, after: string | null, signal: AbortSignal): Promise<Connection<Found> | null> {
  const filter = {
    ...(text.length >= SHORTEST_SEARCH && { search: text }),
    ...(status && { statuses: [status] }),
    ...(saleId && { saleId }),
    ...(saleId && cluster && { cluster }),
    ...(held && { inReview: true }),
    ...(from && { createdFrom: midnight(from) }),
    ...(until && { createdUntil: midnight(until, 1) }),
  };
  return (await request(AdminOrders, { after, filter, orderBy: { direction: oldest ? 'ASC' : 'DESC' } }, signal)).orders;
}

/** A day from the URL; empty if it is not valid. */
const day = (text: string): string => (/^\d{4}-\d\d-\d\d$/.test(text) ? text : '');

export function Orders() {
  const [asked, setStatus] = useQuery('status');
  const status = statuses.find((each) => each === asked) ?? '';
  const [text, setText] = useQuery('q');
  const [saleId, setSale] = useQuery('sale');
  const [from, setFrom] = useQuery('from');
  const [until, setUntil] = useQuery('until');
  const [sort, setSort] = useQuery('sort');
  const [cluster, setCluster] = useQuery('cluster');
  const [held, setHeld] = useQuery('held');
  const [where, go] = useLocation();
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const choice = { text, status, saleId, from: day(from), until: day(until), oldest: sort === 'oldest', cluster, held: held !== '' } as const;
  return (
    <>
      <Title>{ot('op.orders')}</Title>
      <div class="my-4 grid grid-cols-[repeat(auto-fit,minmax(min(100%,9rem),1fr))] items-end gap-3 md:grid-cols-3 xl:grid-cols-[minmax(11rem,1.7fr)_repeat(5,minmax(7.5rem,1fr))]">
        <div class="min-w-0 max-md:col-span-full">
          <Search label={ot('op.searchOrders')} text={text} found={setText} shortest={SHORTEST_SEARCH} />
        </div>
        <Field label={ot('op.status')}>
          <Select value={status} none={ot('op.all')} change={setStatus} choices={statuses.map((each) => ({ value: each, label: t(`status.${each}`) }))} />
        </Field>
        <Sale id={saleId} choose={setSale} />
        <When key={`from ${choice.from}`} kind="day" label={ot('op.from')} value={choice.from} change={setFrom} />
        <When key={`until ${choice.until}`} kind="day" label={ot('op.until')} value={choice.until} change={setUntil} />
        <Field label={ot('op.sort')}>
          <Select value={choice.oldest ? 'oldest' : ''} none={ot('op.newestFirst')} change={setSort} choices={[{ value: 'oldest', label: ot('op.oldestFirst') }]} />
        </Field>
      </div>
      {saleId && cluster && <Filter text={ot('op.bought.filter', { label: isolate(cluster) })} clear={() => setCluster('')} />}
      {held && <Filter text={ot('op.bought.filterHeld')} clear={() => setHeld('')} />}
      <Paged name={`admin-orders ${JSON.stringify(choice)}`} live={!text} ask={(after, signal) => ask(choice, after, signal)}>
        {(orders, reload) => (
          <>
            <div class="mb-3 flex flex-wrap items-center gap-3">
              <button class="btn" onClick={() => save(file(orders), 'orders.csv')}>
                {ot(orders.length === 1 ? 'op.exportShown.one' : 'op.exportShown', { n: count(orders.length) })}
              </button>
              {(text || status || saleId || from || until || sort || cluster || held) && (
                <button class="link" onClick={() => go(where, { replace: true })}>
                  {ot('op.clearFilters')}
                </button>
              )}
              <span class="grow" />
              <TableKeys />
            </div>
            <Bulk orders={orders} chosen={chosen} reload={reload} />
            <Table orders={orders} chosen={chosen} reload={reload} />
          </>
        )}
      </Paged>
    </>
  );
}

/** What is shown, as a file. The columns are named as the API names them, whatever the language. */
function file(orders: Found[]): Blob {
  const heads = ['number', 'createdAt', 'status', 'sale', 'product', 'quantity', 'refundedQuantity', 'buyer', 'total', 'currency'];
  return csv([
    heads,
    ...orders.map(({ number, createdAt, status, sale, item, quantity, refundedQuantity, buyer, total }) =>
      [number, createdAt, status, sale.title, item.goods.name, quantity, refundedQuantity, buyer.account ?? buyer.displayName, total.amount, total.currencyCode]),
  ]);
}

interface TableProps {
  orders: Found[];
  chosen: Signal<ReadonlySet<string>>;
  reload: () => void;
}

/** Columns that a phone has no room for; what they say is under the product there. */
const WIDE = 'max-md:hidden';
const columns: { name: OpKey; class: string }[] = [
  { name: 'op.column.order', class: `text-left ${WIDE}` },
  { name: 'op.column.item', class: 'text-left' },
  { name: 'op.column.buyer', class: `text-left ${WIDE}` },
  { name: 'op.column.placed', class: `text-left ${WIDE}` },
  { name: 'op.column.total', class: `text-right ${WIDE}` },
  { name: 'op.status', class: `text-left ${WIDE}` },
];

function Table({ orders, chosen, reload }: TableProps) {
  const all = orders.every(({ id }) => chosen.value.has(id));
  return (
    <table class="w-full border-collapse text-sm [&_td]:px-2 [&_td]:py-2 [&_th]:px-2 [&_th]:py-2 [&_th]:font-medium [&_th]:text-soft">
      <caption class="sr-only">{ot('op.orders')}</caption>
      <thead class="border-b border-edge">
        <tr>
          <th class="w-8">
            <input type="checkbox" class="size-5 align-middle accent-ink" aria-label={ot('op.bulk.all')} checked={all} onChange={() => (chosen.value = new Set(all ? [] : orders.map(({ id }) => id)))} />
          </th>
          {columns.map(({ name, class: layout }) => (
            <th key={name} scope="col" class={layout}>{ot(name)}</th>
          ))}
          <th class="w-11"><span class="sr-only">{ot('op.column.acts')}</span></th>
        </tr>
      </thead>
      {orders.map((order) => (
        <Row key={order.id} order={order} chosen={chosen} reload={reload} />
      ))}
    </table>
  );
}

/** The newest sales whose titles contain a text. */
async function findSales(text: string, signal: AbortSignal): Promise<Choices> {
  const { sales } = await request(AdminSales, { after: null, statuses: null, search: text || null }, signal);
  return { choices: sales?.edges.map(({ node }) => ({ value: node.id, label: node.title })) ?? [], more: sales?.pageInfo.hasNextPage ?? false };
}

/** The filter by sale. */
function Sale({ id, choose }: { id: string; choose: (id: string) => void }) {
  const { page } = useLoad('admin-orders sales', (signal) => findSales('', signal));
  const first = page.value.state === 'ready' ? page.value.data : { choices: [], more: false };
  return (
    <Pick label={ot('op.sale')} findLabel={ot('op.pick.sale')} list="sales" first={first} find={findSales} value={id} kept={ot('op.chosenSale')} none={ot('op.all')} change={choose} />
  );
}

/** A filter that another page set. */
function Filter({ text, clear }: { text: string; clear: () => void }) {
  return (
    <p class="note mb-3 flex flex-wrap items-center gap-x-4">
      {text}
      <button class="link" onClick={clear}>
        {ot('op.bought.unfilter')}
      </button>
    </p>
  );
}

function Row({ order, chosen, reload }: { order: Found; chosen: TableProps['chosen']; reload: () => void }) {
  const voiding = useSignal(false);
  const expiring = useSignal(false);
  const releasing = useSignal(false);
  const [, go] = useLocation();
  const asked = askedRefund(order);
  const where = `/operate/orders/${order.id}`;
  const mine = chosen.value.has(order.id);
  const choose = (): void => {
    const next = new Set(chosen.value);
    if (!next.delete(order.id)) next.add(order.id);
    chosen.value = next;
  };
  return (
    <tbody class="border-b border-line">
      <tr
        data-row
        class={`cursor-pointer hover:bg-sunk ${mine ? 'bg-sunk' : ''}`}
        onClick={({ target }) => {
          if ((target as Element).closest('a, button, input, details, dialog') || String(getSelection() ?? '')) return; // a text is being copied
          go(where);
        }}
      >
        <td class="pt-2.5! align-top">
          <input type="checkbox" class="size-5 align-middle accent-ink" aria-label={ot('op.bulk.one', { number: order.number })} checked={mine} onChange={choose} />
        </td>
        <td class={`align-top ${WIDE}`}>
          <Link href={where} class="link font-semibold tabular-nums" data-open>
            {order.number}
          </Link>
        </td>
        <td class="align-top">
          <Link href={where} class="link block font-semibold md:hidden">
            {order.number}
          </Link>
          <bdi>{order.item.goods.name}</bdi>
          {order.quantity > 1 && ` × ${count(order.quantity)}`}
          {order.refundedQuantity > 0 && (
            <span class="text-soft"> · {ot('op.refundedUnits', { n: count(order.refundedQuantity), of: count(order.quantity) })}</span>
          )}
          <div class="grid justify-items-start gap-1 text-soft md:hidden">
            <bdi>{order.buyer.account ?? order.buyer.displayName}</bdi>
            <DateTime at={order.createdAt} />
            <strong class="text-ink tabular-nums">{money(order.total)}</strong>
            <StatusChip status={order.status} held={order.review?.held} />
          </div>
        </td>
        <td class={`align-top ${WIDE}`}><bdi>{order.buyer.account ?? order.buyer.displayName}</bdi></td>
        <td class={`align-top whitespace-nowrap ${WIDE}`}><DateTime at={order.createdAt} /></td>
        <td class={`text-right align-top font-semibold tabular-nums ${WIDE}`}>{money(order.total)}</td>
        <td class={`align-top ${WIDE}`}><StatusChip status={order.status} held={order.review?.held} /></td>
        <td class="p-0! text-right align-top">
          <Menu order={order} cancel={() => (voiding.value = true)} expire={() => (expiring.value = true)} />
        </td>
      </tr>
      {(order.review?.held || asked || voiding.value || releasing.value || expiring.value) && (
        <tr>
          <td colSpan={columns.length + 2} class={order.review?.held || asked ? '' : 'p-0!'}>
            <div class="grid gap-3">
      {order.review?.held && (
        <div class="note grid gap-2">
          <p class="font-medium">{ot('op.bought.until', { at: moment(order.review.until) })}</p>
          <p class="break-words whitespace-pre-line">{order.review.answer === null ? ot('op.bought.noAnswer') : ot('op.bought.answer', { text: isolate(order.review.answer) })}</p>
          <button class="btn btn-main justify-self-start" onClick={() => (releasing.value = true)}>
            {ot('op.bought.release')}
            <span class="sr-only"> {order.number}</span>
          </button>
        </div>
      )}
      {asked && (
        <div class="note grid gap-3">
          <p>{ot('op.refund', { amount: money(asked.amount), reason: asked.reason })}</p>
          <Decide refund={asked} reload={reload} />
        </div>
      )}
      {voiding.value && (
        <Voiding order={order} close={() => (voiding.value = false)} reload={reload} />
      )}
      {releasing.value && (
        <Ending
          title={ot('op.bought.release.of', { number: order.number })}
          label={ot('op.bought.release')}
          how={ot('op.bought.releaseHow')}
          send={async ({ note = '' }) => (await request(ReleaseOrder, { input: { orderId: order.id, note } })).releaseOrder?.userErrors[0]}
          close={() => (releasing.value = false)}
          reload={reload}
        />
      )}
      {expiring.value && (
        <Ending
          title={ot('op.expire.of', { number: order.number })}
          label={ot('op.expireBy', { amount: money(order.total) })}
          how={ot('op.expireHow')}
          send={async ({ note = '' }) => (await request(ExpireOrder, { input: { orderId: order.id, note } })).expireOrder?.userErrors[0]}
          close={() => (expiring.value = false)}
          reload={reload}
        />
      )}
            </div>
          </td>
        </tr>
      )}
    </tbody>
  );
}

/** What can be done with an order beside opening it. */
function Menu({ order, cancel, expire }: { order: Found; cancel: () => void; expire: () => void }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const shut = (act: () => void) => (): void => {
    menu.current!.open = false;
    menu.current!.querySelector('summary')!.focus();
    act();
  };
  const line = 'block w-full rounded-lg px-3 py-2 text-left hover:bg-sunk';
  return (
    <details
      ref={menu}
      class="relative"
      onKeyDown={(event) => event.key === 'Escape' && shut(() => {})()}
      onFocusOut={({ relatedTarget }) => relatedTarget instanceof Node && !menu.current!.contains(relatedTarget) && (menu.current!.open = false)}
    >
      <summary class="icon-btn list-none [&::-webkit-details-marker]:hidden" aria-label={ot('op.column.actsOf', { number: order.number })}>
        <Icon name="more" />
      </summary>
      <div class="card rise absolute right-0 z-20 grid w-56 p-2 shadow-xl">
        {['PENDING_PAYMENT', 'PAID'].includes(order.status) && (
          <button class={line} onClick={shut(cancel)}>
            {ot(order.status === 'PAID' ? 'op.refundOrder' : 'op.void')}
            <span class="sr-only"> {order.number}</span>
          </button>
        )}
        {order.status === 'PENDING_PAYMENT' && (
          <button class={line} onClick={shut(expire)}>
            {ot('op.expire')}
            <span class="sr-only"> {order.number}</span>
          </button>
        )}
        <Link class={line} href={`/orders/${order.id}`}>
          {ot('op.asBuyer')}
          <span class="sr-only"> {order.number}</span>
        </Link>
      </div>
    </details>
  );
}

/** Cancels an unpaid order, or refunds units of a paid one. */
function Voiding({ order, close, reload }: { order: Found; close: () => void; reload: () => void }) {
  const left = order.quantity - order.refundedQuantity;
  const units = useSignal(left);
  const paid = order.status === 'PAID';
  const amount = money(times(order.unitPrice, units.value));
  return (
    <Ending
      title={ot(paid ? 'op.refund.of' : 'op.void.of', { number: order.number })}
      label={ot(paid ? 'op.refundYes' : 'op.voidBy', { amount })}
      how={ot(paid ? 'op.refundHow' : 'op.voidHow')}
      send={async ({ note = '' }) => {
        const { voidOrder } = await request(VoidOrder, { input: { orderId: order.id, note, quantity: units.value < left ? units.value : null } });
        if (voidOrder?.intervention) acted(voidOrder.intervention);
        return voidOrder?.userErrors[0];
      }}
      close={close}
      reload={reload}
    >
      {paid && left > 1 && (
        <Field label={ot('op.unitsOf')}>
          <Select
            value={String(units.value)}
            change={(value) => (units.value = Number(value))}
            choices={upTo(left, (n) => t('order.refundOf', { n: count(n), of: count(left) }))}
          />
        </Field>
      )}
    </Ending>
  );
}

interface EndingProps {
  title: string;
  label: string;
  how: string;
  send: (values: Values) => Promise<Failure | null | undefined>;
  /** Fields above the reason. */
  children?: ComponentChildren;
  close: () => void;
  reload: () => void;
}

/** Asks for the reason, and confirms that an order or its review is to end. */
function Ending({ title, label, how, send, children, close, reload }: EndingProps) {
  const done = (): void => {
    close();
    reload();
  };
  return (
    <Dialog title={title} close={close}>
      <Form label={label} send={send} done={done}>
        <p>{how}</p>
        {children}
        <Note label={ot('op.reason')} required />
      </Form>
    </Dialog>
  );
}
