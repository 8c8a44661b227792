/** What a sale of the first page says beside its name: how it goes, what is wrong, what its opening still lacks. */
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { now } from '../api/clock';
import { PulseOf } from '../documents/figures';
import type { HomeSales } from '../documents/operator';
import { count, money, span } from '../i18n/text';
import type { ResultOf } from '@seckill/client/operation';
import type { SaleOfList } from './sale-row';
import { ot } from './texts';

type Stats = NonNullable<NonNullable<ResultOf<typeof PulseOf>['sale']>['saleStats']>;
type Server = ResultOf<typeof HomeSales>['serverInfo'];

/** Orders that wait longer than this are an alarm, in seconds. */
const LATE_S = 5;
/** A sale that opens within this time should be preloaded, in ms. */
const PRELOAD_MS = 5 * 60_000;

/** The points of a line through the orders of the last 15 minutes, in a box of 100 by 24. */
export function spark(orders: readonly number[]): string {
  const most = Math.max(...orders, 1);
  return orders.map((n, i) => `${(i / Math.max(1, orders.length - 1)) * 100},${23 - (n / most) * 22}`).join(' ');
}

/** What is wrong with a running sale. */
function alarmsOf({ conserved, queueAgeSeconds, remainingUnits }: Stats, { status }: SaleOfList): string[] {
  return [
    ...(conserved ? [] : [ot('op.sumBroken')]),
    ...(queueAgeSeconds > LATE_S ? [ot('op.alarm.queue', { time: span(Math.round(queueAgeSeconds)) })] : []),
    ...(status === 'LIVE' && remainingUnits === 0 ? [ot('op.alarm.none')] : []),
  ];
}

/** The last midnight where the reader is. */
export function midnight(at: number): string {
  return new Date(new Date(at).setHours(0, 0, 0, 0)).toISOString();
}

/** Orders and revenue of today and the last minutes of a running sale, with its alarms. */
export function Pulse({ sale }: { sale: SaleOfList }) {
  const { page, reload } = useLoad(`pulse ${sale.id}`, async (signal) => (await request(PulseOf, { id: sale.id, today: midnight(now()) }, signal)).sale);
  useRefresh(reload);
  const { saleStats: stats, orderTotals: today } = (page.value.state === 'ready' && page.value.data) || {};
  return (
    <div class="order-last flex min-h-8 w-full flex-wrap items-center gap-x-6 gap-y-1 text-sm tabular-nums" data-pulse>
      {stats && (
        <>
          {today && (
            <>
              <span>{ot('op.today.orders')} <strong>{count(today.orders)}</strong></span>
              <span>{ot('op.today.value')} <strong>{money(today.netValue)}</strong></span>
            </>
          )}
          {stats.recentOrders.some((n) => n > 0) && (
            <svg viewBox="0 0 100 24" preserveAspectRatio="none" class="h-6 w-32 max-w-full text-good" role="img" aria-label={ot('op.pulse.line')}>
              <polyline fill="none" stroke="currentColor" stroke-width="2" vector-effect="non-scaling-stroke" points={spark(stats.recentOrders)} />
            </svg>
          )}
          {alarmsOf(stats, sale).map((alarm) => (
            <span key={alarm} class="chip whitespace-normal text-danger">{alarm}</span>
          ))}
        </>
      )}
    </div>
  );
}

/** What an opening still lacks, as far as it is known. */
export function missingOf({ status, startsAt, requireVerifiedContact }: Pick<SaleOfList, 'status' | 'startsAt' | 'requireVerifiedContact'>, server: Server, at: number): string[] {
  return [
    ...(status === 'PENDING_APPROVAL' ? [ot('op.missing.approval')] : []),
    ...(status === 'APPROVED' ? [ot('op.missing.schedule')] : []),
    ...(status === 'SCHEDULED' && Date.parse(startsAt) - at < PRELOAD_MS ? [ot('op.missing.preload')] : []),
    ...(server?.payments === false ? [ot('op.missing.payment')] : []),
    ...(server && !server.publicUrl ? [ot('op.missing.address')] : []),
    ...(requireVerifiedContact && server?.mail === false ? [ot('op.missing.mail')] : []),
  ];
}

/** That, in a line; that nothing is missing where a sale only waits for its time. */
export function Missing({ sale, server }: { sale: SaleOfList; server: Server }) {
  const missing = missingOf(sale, server, now());
  return (
    <p class="order-last w-full text-sm" data-missing>
      {missing.length ? <span class="text-warn">{ot('op.missing', { what: missing.join(ot('op.and')) })}</span> : <span class="text-good">{ot('op.missing.none')}</span>}
      {!sale.requiresAddress && <span class="text-soft"> · {ot('op.noDelivery')}</span>}
    </p>
  );
}
