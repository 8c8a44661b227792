/** My orders, newest first. */
import { Link } from 'wouter-preact';
import { orders } from '../api/stores';
import { now, second } from '../api/clock';
import { usePaged } from '../api/paged';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import type { Order } from '@seckill/client/types';
import { MyOrders } from '../documents/orders';
import { digits, money, t } from '../i18n/text';
import { FaultMessage, Loading, More, Picture, Stale, Title, DateTime } from '../ui/bits';
import { Icon } from '../ui/icons';
import { useTitle } from '../ui/title';
import { SignInFirst } from './order';
import { StatusChip } from './status';

export { OrderPage } from './order';

export function Orders() {
  useTitle(t('orders.title'));
  if (!currentUser.value) return <SignInFirst next="/orders" />;
  return <Mine />;
}

function Mine() {
  const { page, reload, next, busy } = usePaged('orders', async (after, signal) => {
    const { myOrders } = await request(MyOrders, { after }, signal);
    for (const { node } of myOrders?.edges ?? []) orders.put(node.id, node);
    return myOrders;
  });
  const ready = page.value.state === 'ready' ? page.value : null;
  return (
    <div class="page max-w-3xl">
      <div class="mb-5">
        <Title>{t('orders.title')}</Title>
      </div>
      {page.value.state === 'loading' && <Loading />}
      {page.value.state === 'failed' && <FaultMessage fault={page.value.fault} again={reload} />}
      {ready && <Stale fault={ready.fault} again={reload} />}
      {ready && !ready.data.nodes.length && (
        <p class="note">
          {t('orders.none')}{' '}
          <Link class="link" href="/">
            {t('sale.toList')}
          </Link>
        </p>
      )}
      <ul class="grid grid-cols-1 gap-3">
        {ready?.data.nodes.map(({ id }) => {
          const order = orders.of(id).value;
          return order && <Row key={id} order={order} />;
        })}
      </ul>
      {ready?.data.more && <More next={next} busy={busy} />}
    </div>
  );
}

function Row({ order }: { order: Order }) {
  void second.value;
  const left = order.status === 'PENDING_PAYMENT' && order.paymentDeadline ? Date.parse(order.paymentDeadline) - now() : 0;
  return (
    <li class="card relative flex flex-wrap items-center gap-4 p-3 has-[a:hover]:border-edge">
      <Picture goods={order.item.goods} class="size-16 shrink-0 rounded-xl sm:size-20" />
      <div class="grid min-w-0 grow basis-44 gap-1">
        <div class="flex flex-wrap items-center justify-between gap-2">
          <Link href={`/orders/${order.id}`} class="font-semibold after:absolute after:inset-0">
            <bdi>{order.item.goods.name}</bdi>
            {order.quantity > 1 && ` × ${order.quantity}`}
          </Link>
          <StatusChip status={order.status} held={order.review?.held} />
        </div>
        <p class="text-sm text-soft">
          <bdi>{order.sale.title}</bdi> · <DateTime at={order.createdAt} />
        </p>
        <p class="flex flex-wrap gap-x-3 tabular-nums">
          <strong>{money(order.total)}</strong>
          {left > 0 && (
            <span class="notranslate text-sm text-warn" aria-hidden="true">
              {t('order.payLeft', { time: digits(left, 'down') })}
            </span>
          )}
        </p>
      </div>
      <span class="text-soft max-sm:hidden">
        <Icon name="next" />
      </span>
    </li>
  );
}
