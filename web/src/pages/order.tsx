/** The page of an order: its status, its actions, its history. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { orders } from '../api/stores';
import { now } from '../api/clock';
import { client } from '../api/client';
import { useLoad } from '../api/load';
import { currentUser } from '../api/session';
import { followOrder, readOrder } from '@seckill/client/order';
import type { Order } from '@seckill/client/types';
import { count, fullDate, isolate, money, t } from '../i18n/text';
import { withdraw } from '../purchase/shared';
import { Loading, Picture, Stale, Title, DateTime, Unready } from '../ui/bits';
import { Ticking, useLeft, useThresholds } from '../ui/countdown';
import { Tick } from '../ui/icons';
import { useTitle } from '../ui/title';
import { addressLine } from './address-book';
import { Correction } from './correction';
import { OrderActions } from './order-actions';
import { OrderReview } from './order-review';
import { StatusChip } from './status';

const WARNING = { 120: 'order.warn2m' } as const;

async function ask(id: string, signal?: AbortSignal): Promise<Order | null> {
  const order = await readOrder(client, id, signal);
  return order && orders.put(order.id, order);
}

export function OrderPage({ id }: { id: string }) {
  const { page, reload } = useLoad(`order ${id}`, (signal) => (currentUser.peek() ? ask(id, signal) : Promise.resolve(null)));
  const order = orders.of(id).value;
  useTitle(order ? t('order.title', { number: order.number }) : t('orders.title'));
  useEffect(
    () =>
      currentUser.peek() ? followOrder(client, id, (order) => void orders.put(id, order)) : undefined,
    [id, currentUser.value?.id],
  );
  const settled = order && order.status !== 'PENDING_PAYMENT' ? order.id : null;
  useEffect(() => {
    if (settled) withdraw(settled); // paid or cancelled here, or seen only now
  }, [settled]);
  if (!currentUser.value) return <SignInFirst next={`/orders/${id}`} />;
  if (order) {
    return (
      <div class="page max-w-3xl">
        {page.value.state === 'ready' && <Stale fault={page.value.fault} again={reload} />}
        <Shown order={order} />
      </div>
    );
  }
  if (page.value.state === 'ready') return <Loading />;
  const missing = (
    <div class="page">
      <Title>{t('order.missing')}</Title>
      <Link href="/orders" class="link mt-4 inline-block">
        {t('orders.title')}
      </Link>
    </div>
  );
  return <Unready page={page.value} again={reload} inset missing={missing} />;
}

/** Asks for the sign-in and leads back. */
export function SignInFirst({ next }: { next: string }) {
  return (
    <div class="page">
      <Title>{t('orders.title')}</Title>
      <p class="note mt-5">
        {t('orders.signIn')}{' '}
        <Link class="link" href={`/sign-in?next=${encodeURIComponent(next)}`}>
          {t('nav.signIn')}
        </Link>
      </p>
    </div>
  );
}

/** What a paid order says first: that it is paid, and what happens next. */
function Paid({ order, open }: { order: Order; open: () => void }) {
  const next = order.fulfilment?.state ?? (order.recipient ? 'PREPARING' : 'NONE');
  return (
    <div class="grid justify-items-center gap-2 py-3 text-center print:hidden">
      <Tick size={72} />
      <p class="text-xl font-extrabold text-balance sm:text-2xl">{t('order.thanks', { amount: money(order.total) })}</p>
      {order.paidAt && (
        <p class="text-sm text-soft">
          <DateTime at={order.paidAt} />
        </p>
      )}
      <p class="max-w-md text-balance">{t(`next.${next}`)}</p>
      <button class="btn btn-main mt-2" onClick={open}>
        {t('receipt.view')}
      </button>
    </div>
  );
}

/** The height of what a paid order says, for an order whose payment is under way. */
const PAID_HEIGHT = '27.5rem';

/** The part that a payment replaces has room for what follows, and keeps its height at that moment, so that what is below stays where it is. */
function useScene({ status, payments }: Order) {
  const scene = useRef<HTMLDivElement>(null);
  const was = useRef({ status, height: 0 });
  if (was.current.status === 'PENDING_PAYMENT' && status === 'PAID') was.current.height = scene.current?.offsetHeight ?? 0;
  was.current.status = status;
  const paying = status === 'PENDING_PAYMENT' && payments?.[0]?.status === 'PENDING';
  return { scene, minHeight: status === 'PAID' ? `${was.current.height}px` : paying ? PAID_HEIGHT : 'auto' };
}

function Shown({ order }: { order: Order }) {
  const shown = useSignal(false);
  const receipt = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!shown.value) return;
    receipt.current?.scrollIntoView();
    receipt.current?.focus({ preventScroll: true });
  }, [shown.value]);
  const unpaid = order.status === 'PENDING_PAYMENT';
  const { scene, minHeight } = useScene(order);
  const actions = (
    <div key="actions" class="print:hidden">
      <OrderActions order={order} />
    </div>
  );
  return (
    <>
      <div class="mb-5 flex flex-wrap items-center justify-between gap-3">
        <Title>{t('order.title', { number: order.number })}</Title>
        {order.paidAt && <p class="hidden text-lg font-semibold print:block">{t('receipt.number', { number: order.number })}</p>}
        <span aria-live="polite" class="print:hidden">
          <StatusChip status={order.status} held={order.review?.held} />
        </span>
      </div>
      <div class="card @container grid grid-cols-1 gap-5 p-5">
        <div key={order.status === 'PAID' ? 'paid' : 'open'} ref={scene} class="grid grid-cols-1 content-evenly gap-5" style={{ minHeight }}>
          {order.status === 'PAID' && <Paid order={order} open={() => (shown.value = true)} />}
          <div class="flex flex-wrap gap-4">
            <Picture goods={order.item.goods} alt={order.item.goods.imageAlt ?? ''} class="size-24 shrink-0 rounded-xl" />
            <div class="grid min-w-0 grow basis-32 content-center gap-1">
              <p class="head">
                <bdi>{order.item.goods.name}</bdi>
                {order.quantity > 1 && ` × ${order.quantity}`}
              </p>
              <p class="numeral text-2xl">{money(order.total)}</p>
            </div>
          </div>
          {order.status === 'PENDING_PAYMENT' && order.paymentDeadline && <Deadline until={order.paymentDeadline} />}
          {order.refundedQuantity > 0 && order.status !== 'REFUNDED' && (
            <p class="note">{t('order.refundedPart', { n: count(order.refundedQuantity), of: count(order.quantity), amount: money(order.refundedAmount) })}</p>
          )}
          <OrderReview order={order} />
          {unpaid && actions}
        </div>
        <Shipping order={order} />
        <Facts order={order} />
        {order.paidAt && (
          <div ref={receipt} class={`scroll-mt-4 gap-5 ${order.status === 'PAID' && !shown.value ? 'hidden print:grid' : 'grid'}`} tabIndex={-1}>
            <Receipt order={order} />
            <button class="btn justify-self-start print:hidden" onClick={() => print()}>
              {t('receipt.print')}
            </button>
          </div>
        )}
        {!unpaid && actions}
      </div>
      <History order={order} />
    </>
  );
}

/** The time left to pay; read out two minutes before the end. */
function Deadline({ until }: { until: string }) {
  const at = Date.parse(until);
  useThresholds(useLeft(at), WARNING);
  if (at < now()) return null;
  return (
    <p class="note flex flex-wrap items-center justify-between gap-2">
      <span>{t('order.left')}</span>
      <strong class="numeral text-2xl">
        <Ticking until={at} rounding="down" />
      </strong>
    </p>
  );
}

/** The shipping address and the state of the delivery. */
function Shipping({ order }: { order: Order }) {
  const { recipient, fulfilment } = order;
  if (!recipient && !fulfilment) return null;
  return (
    <section class="grid gap-2" aria-label={t('ship.title')}>
      {fulfilment && (
        <p class="note" aria-live="polite">
          <strong>{t(`ship.${fulfilment.state}`)}</strong>
          {fulfilment.carrier && ` · ${isolate(fulfilment.carrier)}`}{' '}
          {fulfilment.trackingUrl && (
            <a class="link print:hidden" href={fulfilment.trackingUrl} rel="noopener noreferrer" target="_blank">
              {t('ship.track')}
            </a>
          )}
        </p>
      )}
      {recipient && (
        <p>
          <span class="text-soft">{t('ship.to')}</span> <bdi>{recipient.name}</bdi>, {recipient.phone}
          <br />
          {addressLine(recipient)}
        </p>
      )}
      {recipient && <Correction id={order.id} revision={order.revision} recipient={recipient} corrected={(now) => orders.put(now.id, now)} />}
    </section>
  );
}

/** What paid an order, as buyers know it; null before, and where the payment is not known. */
function methodOf({ payments }: Order): string | null {
  return payments?.find(({ status }) => status === 'SUCCEEDED' || status === 'REFUNDED')?.option?.displayName ?? null;
}

/** What a receipt says beside the order. */
function Receipt({ order }: { order: Order }) {
  const { receipt, total, paidAt, recipient, item, quantity } = order;
  if (!receipt) return null;
  const method = methodOf(order);
  const buyer = recipient?.name ?? currentUser.value?.displayName;
  return (
    <dl class="grid grid-cols-[auto_1fr] @max-[13rem]:grid-cols-1 gap-x-6 gap-y-2 border-t border-line pt-4" data-receipt>
      {paidAt && (
        <>
          <dt class="text-soft">{t('receipt.date')}</dt>
          <dd>
            <time dateTime={paidAt}>{fullDate(paidAt)}</time>
          </dd>
        </>
      )}
      {buyer && (
        <>
          <dt class="text-soft">{t('receipt.buyer')}</dt>
          <dd class="wrap-anywhere">
            <bdi>{buyer}</bdi>
          </dd>
        </>
      )}
      <dt class="text-soft">{t('receipt.item')}</dt>
      <dd class="wrap-anywhere">
        <bdi>{item.goods.name}</bdi> × {count(quantity)}
      </dd>
      {method && (
        <>
          <dt class="text-soft">{t('receipt.method')}</dt>
          <dd>{method}</dd>
        </>
      )}
      <dt class="text-soft">{t('receipt.total')}</dt>
      <dd class="tabular-nums">{money(total)}</dd>
      {receipt.tax && (
        <>
          <dt class="text-soft">{t('receipt.tax', { rate: receipt.tax.rate, name: receipt.tax.name })}</dt>
          <dd class="tabular-nums">{money(receipt.tax.amount)}</dd>
        </>
      )}
      {receipt.seller && (
        <>
          <dt class="text-soft">{t('receipt.seller')}</dt>
          <dd>
            {[receipt.seller, ...receipt.sellerDetails].map((line) => (
              <span key={line} class="block wrap-anywhere">
                <bdi>{line}</bdi>
              </span>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}

function Facts({ order }: { order: Order }) {
  return (
    <dl class="grid grid-cols-[auto_1fr] @max-[13rem]:grid-cols-1 gap-x-6 gap-y-2 border-t border-line pt-4">
      <dt class="text-soft">{t('order.from')}</dt>
      <dd>
        <Link class="link" href={`/s/${order.sale.slug}`}>
          <bdi>{order.sale.title}</bdi>
        </Link>
      </dd>
      {order.quantity > 1 && (
        <>
          <dt class="text-soft">{t('order.each')}</dt>
          <dd class="tabular-nums">{money(order.unitPrice)}</dd>
        </>
      )}
      <dt class="text-soft">{t('order.made')}</dt>
      <dd>
        <DateTime at={order.createdAt} />
      </dd>
      {order.paidAt && (
        <>
          <dt class="text-soft">{t('order.paid')}</dt>
          <dd>
            <DateTime at={order.paidAt} />
          </dd>
        </>
      )}
      {order.paymentDeadline && (
        <>
          <dt class="text-soft">{t('order.deadline')}</dt>
          <dd>
            <DateTime at={order.paymentDeadline} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The refunds and the history of the order. */
function History({ order }: { order: Order }) {
  return (
    <>
      {!!order.refunds?.length && (
        <section class="mt-6">
          <h2 class="head mb-2">{t('order.refunds')}</h2>
          <ul class="grid gap-2">
            {order.refunds.map((refund) => (
              <li key={refund.id} class="note flex flex-wrap justify-between gap-2">
                <span><bdi>{refund.reason}</bdi></span>
                <span>
                  {order.quantity > 1 && refund.quantity && `${t('order.refundUnits', { n: count(refund.quantity) })} · `}
                  {money(refund.amount)} · {t(`refund.${refund.status}`)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {!!order.timeline?.length && (
        <section class="mt-6 print:hidden">
          <h2 class="head mb-2">{t('order.history')}</h2>
          <ol class="grid gap-3 border-l-2 border-line pl-4">
            {order.timeline.map((step, i) => {
              // A repeated status, as after a partial refund, says nothing new: show the note. Also for REFUNDING, which readers would take for the refund's current state.
              const named = !step.note || (step.status !== 'REFUNDING' && order.timeline.findIndex(({ status }) => status === step.status) === i);
              return (
                <li key={i}>
                  <p class="font-medium"><bdi>{named ? t(`status.${step.status}`) : step.note}</bdi></p>
                  <p class="text-sm text-soft">
                    <DateTime at={step.at} /> <bdi>{named && step.note}</bdi>
                  </p>
                </li>
              );
            })}
          </ol>
        </section>
      )}
    </>
  );
}
