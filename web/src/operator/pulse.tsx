/** What a sale of the first page says beside its name: how it goes, what is wrong, what its opening still lacks. */
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { now } from '../api/clock';
import { PulseOf } from '../documents/figures';
import { count, money, span } from '../i18n/text';
import type { ResultOf } from '@seckill/client/operation';
import type { SaleOfList } from './sale-row';
import { ot } from './texts';

type Stats = NonNullable<NonNullable<ResultOf<typeof PulseOf>['sale']>['saleStats']>;

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

/** Orders, revenue and the last minutes of a running sale, with its alarms. */
export function Pulse({ sale }: { sale: SaleOfList }) {
  const { page, reload } = useLoad(`pulse ${sale.id}`, async (signal) => (await request(PulseOf, { id: sale.id }, signal)).sale?.saleStats ?? null);
  useRefresh(reload);
  const stats = page.value.state === 'ready' ? page.value.data : null;
  return (
    <div class="order-last flex min-h-8 w-full flex-wrap items-center gap-x-6 gap-y-1 text-sm tabular-nums" data-pulse>
      {stats && (
        <>
          <span>{ot('op.orders')} <strong>{count(stats.orders)}</strong></span>
          <span>{ot('op.gmv')} <strong>{money(stats.netValue)}</strong></span>
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
export function missingOf({ status, startsAt, requireVerifiedContact }: Pick<SaleOfList, 'status' | 'startsAt' | 'requireVerifiedContact'>, mail: boolean, at: number): string[] {
  return [
    ...(status === 'PENDING_APPROVAL' ? [ot('op.missing.approval')] : []),
    ...(status === 'APPROVED' ? [ot('op.missing.schedule')] : []),
    ...(status === 'SCHEDULED' && Date.parse(startsAt) - at < PRELOAD_MS ? [ot('op.missing.preload')] : []),
    ...(requireVerifiedContact && !mail ? [ot('op.missing.mail')] : []),
  ];
}

/** That, in a line; that nothing is missing where a sale only waits for its time. */
export function Missing({ sale, mail }: { sale: SaleOfList; mail: boolean }) {
  const missing = missingOf(sale, mail, now());
  return (
    <p class="order-last w-full text-sm" data-missing>
      {missing.length ? <span class="text-warn">{ot('op.missing', { what: missing.join(ot('op.and')) })}</span> : <span class="text-good">{ot('op.missing.none')}</span>}
    </p>
  );
}
