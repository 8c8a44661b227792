/** All orders: search, decide on refunds, cancel. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
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
import { acted } from './asked';
import { Field, Form, Note, type Values } from './form';
import { Paged } from './paged';
import { Decide } from './refunds';
import { Search, useQuery } from './search';
import { Pick, type Found as Choices } from './pick';
import { ot } from './texts';
import { Select, upTo } from '../ui/select';

type Found = NonNullable<ResultOf<typeof AdminOrders>['orders']>['edges'][number]['node'];

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
  const choice = { text, status, saleId, from: day(from), until: day(until), oldest: sort === 'oldest', cluster, held: held !== '' } as const;
  return (
    <>
      <div class="mb-4 flex flex-wrap items-end justify-between gap-3">
        <Title>{ot('op.orders')}</Title>
        <div class="flex flex-wrap items-end gap-3 max-sm:w-full">
          <Search label={ot('op.searchOrders')} text={text} found={setText} shortest={SHORTEST_SEARCH} />
          <Field label={ot('op.status')}>
            <Select value={status} none={ot('op.all')} change={setStatus} choices={statuses.map((each) => ({ value: each, label: t(`status.${each}`) }))} />
          </Field>
          <Sale id={saleId} choose={setSale} />
          <Field label={ot('op.from')}>
            <input class="field font-normal" type="date" value={choice.from} onChange={(event) => setFrom(event.currentTarget.value)} />
          </Field>
          <Field label={ot('op.until')}>
            <input class="field font-normal" type="date" value={choice.until} onChange={(event) => setUntil(event.currentTarget.value)} />
          </Field>
          <Field label={ot('op.sort')}>
            <Select value={choice.oldest ? 'oldest' : ''} none={ot('op.newestFirst')} change={setSort} choices={[{ value: 'oldest', label: ot('op.oldestFirst') }]} />
          </Field>
        </div>
      </div>
      {saleId && cluster && <Filter text={ot('op.bought.filter', { label: isolate(cluster) })} clear={() => setCluster('')} />}
      {held && <Filter text={ot('op.bought.filterHeld')} clear={() => setHeld('')} />}
      <Paged name={`admin-orders ${JSON.stringify(choice)}`} live={!text} ask={(after, signal) => ask(choice, after, signal)}>
        {(orders, reload) => (
          <ul class="grid gap-2">
            {orders.map((order) => (
              <Row key={order.id} order={order} reload={reload} />
            ))}
          </ul>
        )}
      </Paged>
    </>
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
    <div class="w-48 max-w-full">
      <Pick label={ot('op.sale')} findLabel={ot('op.pick.sale')} list="sales" first={first} find={findSales} value={id} kept={ot('op.chosenSale')} none={ot('op.all')} change={choose} />
    </div>
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

function Row({ order, reload }: { order: Found; reload: () => void }) {
  const voiding = useSignal(false);
  const expiring = useSignal(false);
  const releasing = useSignal(false);
  const asked = order.refunds?.find(({ status }) => status === 'REQUESTED');
  return (
    <li class="card grid gap-3 px-4 py-3">
      <div class="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Link href={`/orders/${order.id}`} class="link font-semibold tabular-nums">
          {order.number}
        </Link>
        <span class="grow">
          <bdi>{order.item.goods.name}</bdi>
          {order.quantity > 1 && ` × ${count(order.quantity)}`}
          {order.refundedQuantity > 0 && (
            <span class="text-sm text-soft"> · {ot('op.refundedUnits', { n: count(order.refundedQuantity), of: count(order.quantity) })}</span>
          )}
        </span>
        <span class="text-sm text-soft"><bdi>{order.buyer.account ?? order.buyer.displayName}</bdi></span>
        <span class="text-sm text-soft">
          <DateTime at={order.createdAt} />
        </span>
        <strong class="tabular-nums">{money(order.total)}</strong>
        <StatusChip status={order.status} held={order.review?.held} />
        <Link href={`/operate/orders/${order.id}`} class="link text-sm">
          {ot('op.money')}
          <span class="sr-only"> {order.number}</span>
        </Link>
        {['PENDING_PAYMENT', 'PAID'].includes(order.status) && (
          <button class="link text-sm" onClick={() => (voiding.value = true)}>
            {ot(order.status === 'PAID' ? 'op.refundOrder' : 'op.void')}
            <span class="sr-only"> {order.number}</span>
          </button>
        )}
        {order.status === 'PENDING_PAYMENT' && (
          <button class="link text-sm" onClick={() => (expiring.value = true)}>
            {ot('op.expire')}
            <span class="sr-only"> {order.number}</span>
          </button>
        )}
      </div>
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
    </li>
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
