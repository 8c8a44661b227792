import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { count } from '../i18n/text';
import { DateTime, Picture } from '../ui/bits';
import type { ResultOf } from '@seckill/client/operation';
import type { SaleRowParts } from '../documents/operator';
import type { SaleStatus } from './acts';
import { ot } from './texts';

const tones: Partial<Record<SaleStatus, string>> = { LIVE: 'text-good', PAUSED: 'text-warn', PENDING_APPROVAL: 'text-warn' };

/** The status of a sale. */
export function StatusChip({ status }: { status: SaleStatus }) {
  return <span key={status} class={`chip ${tones[status] ?? 'text-soft'}`}>{ot(`op.status.${status}`)}</span>;
}

/** The mark of a sale that only buyers with access see. */
export function PrivateChip() {
  return <span class="chip text-soft">{ot('op.privateMark')}</span>;
}

/** States in which units are sold. */
const SELLING: SaleStatus[] = ['LIVE', 'PAUSED'];

/** A sale of a list. */
export type SaleOfList = ResultOf<typeof SaleRowParts>;

/** One sale of a list; the children are a line below it. */
export function SaleRow({ sale, children }: { sale: SaleOfList; children?: ComponentChildren }) {
  const goods = sale.items[0]?.goods;
  return (
    <li class="card relative flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 has-[a:hover]:border-edge">
      {goods && <Picture goods={goods} inList class="size-10 shrink-0 rounded-lg" />}
      <Link href={`/operate/sales/${sale.id}`} class="min-w-0 grow basis-32 font-semibold after:absolute after:inset-0">
        <bdi>{sale.title}</bdi>
      </Link>
      <span class="flex flex-wrap gap-x-4 text-sm text-soft tabular-nums max-xl:order-last max-xl:w-full">
        <DateTime at={sale.startsAt} zone />
        <Units sale={sale} />
      </span>
      {sale.private && <PrivateChip />}
      <StatusChip status={sale.status} />
      {children}
    </li>
  );
}

/** The units on sale; while they are sold, how many of them are left, also as a bar. */
function Units({ sale: { items, status } }: { sale: SaleOfList }) {
  const sum = (of: 'remaining' | 'total'): number => items.reduce((all, { stock }) => all + (stock[of] ?? 0), 0);
  const total = sum('total');
  if (!SELLING.includes(status) || items.some(({ stock }) => stock.remaining === null)) return <span>{ot('op.unitsOnSale', { n: count(total) })}</span>;
  const left = sum('remaining');
  return (
    <span class="grid w-40 max-w-full gap-1" data-units>
      {ot('op.unitsLeft', { left: count(left), total: count(total) })}
      <span class="block h-1.5 overflow-hidden rounded-full bg-line" aria-hidden="true">
        <span class="block h-full rounded-full bg-good" style={{ width: `${total ? (left / total) * 100 : 0}%` }} />
      </span>
    </span>
  );
}
