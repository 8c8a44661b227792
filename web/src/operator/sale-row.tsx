import { Link } from 'wouter-preact';
import { count } from '../i18n/text';
import { DateTime } from '../ui/bits';
import type { ResultOf } from '@seckill/client/operation';
import type { SaleRowParts } from '../documents/operator';
import type { SaleStatus } from './acts';
import { ot } from './texts';

const tones: Partial<Record<SaleStatus, string>> = { LIVE: 'text-good', PAUSED: 'text-warn', PENDING_APPROVAL: 'text-warn' };

/** The status of a sale. */
export function StatusChip({ status }: { status: SaleStatus }) {
  return <span key={status} class={`chip ${tones[status] ?? 'text-soft'}`}>{ot(`op.status.${status}`)}</span>;
}

/** One sale of a list. */
export function SaleRow({ sale }: { sale: ResultOf<typeof SaleRowParts> }) {
  return (
    <li class="card relative flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 has-[a:hover]:border-edge">
      <Link href={`/operate/sales/${sale.id}`} class="grow basis-32 font-semibold after:absolute after:inset-0">
        <bdi>{sale.title}</bdi>
      </Link>
      <span class="flex flex-wrap gap-x-4 text-sm text-soft tabular-nums max-xl:order-last max-xl:w-full">
        <DateTime at={sale.startsAt} zone />
        <span>
          {ot('op.stock')} {count(sale.items.reduce((sum, { stock }) => sum + (stock.total ?? 0), 0))}
        </span>
      </span>
      <StatusChip status={sale.status} />
    </li>
  );
}
