/** Everything that waits for a decision, with a link to the page of each. */
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { Inbox as InboxDoc } from '../documents/inbox';
import { count, isolate, t } from '../i18n/text';
import { DateTime } from '../ui/bits';
import { waiting } from './inbox-count';
import { Shell } from './shell';
import { ot } from './texts';

type Entry = NonNullable<ResultOf<typeof InboxDoc>['inbox']>['entries'][number];

/** Most entries of one kind that the API returns. */
const MOST_OF_KIND = 200;

/** The page. It loads again when the count is pushed. */
export function Inbox() {
  const loaded = useLoad('inbox', async (abort) => (await request(InboxDoc, {}, abort)).inbox);
  const pushed = waiting.value;
  useEffect(() => {
    if (loaded.page.peek().state === 'ready') void loaded.reload();
  }, [pushed]);
  const title = ({ totalCount }: { totalCount: number }) => (
    <>
      {ot('op.inbox')} <span class="font-normal text-soft tabular-nums">{count(totalCount)}</span>
    </>
  );
  return (
    <Shell of={loaded} title={title}>
      {({ entries, counts }) => (
        <>
          {entries.length ? (
            <ul class="grid grid-cols-1 gap-2">
              {entries.map((entry) => (
                <InboxRow key={entry.kind + entry.subjectId} entry={entry} />
              ))}
            </ul>
          ) : (
            <p class="note">{ot('op.inboxNone')}</p>
          )}
          {counts.some(({ more }) => more) && <p class="note">{ot('op.inboxMore', { n: count(MOST_OF_KIND) })}</p>}
        </>
      )}
    </Shell>
  );
}

/** An entry, with a link to the page where it is decided. */
export function InboxRow({ entry }: { entry: Entry }) {
  const href = placeOf(entry);
  const name = ot(`op.inbox.${entry.kind}`);
  const about = entry.order?.number ?? entry.sale?.title ?? (entry.kind === 'PROVIDER_AWAY' ? entry.subjectId : '');
  return (
    <li class="card relative grid grid-cols-1 gap-1 px-4 py-3">
      <p class="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        {href ? (
          <Link href={href} class="font-semibold after:absolute after:inset-0">
            <bdi>{name}</bdi>
          </Link>
        ) : (
          <span class="font-semibold"><bdi>{name}</bdi></span>
        )}
        <span class="min-w-0 grow break-words">
          {about}
          {entry.quantity !== null && <span class="text-soft"> {entry.kind === 'STOCK_CHANGE' ? `+${count(entry.quantity)}` : t('order.refundUnits', { n: count(entry.quantity) })}</span>}
        </span>
        {!entry.decidable && <span class="chip">{ot('op.inboxOwn')}</span>}
      </p>
      <p class="min-w-0 text-sm break-words text-soft">
        <DateTime at={entry.since} />
        {entry.note && ` · ${isolate(entry.note)}`}
        {entry.kind === 'PROVIDER_AWAY' && ` · ${ot('op.inboxAway')}`}
      </p>
    </li>
  );
}

/** The page where an entry is decided, or where its effects are limited. */
function placeOf({ kind, sale, order }: Entry): string | null {
  switch (kind) {
    case 'REFUND':
    case 'REFUND_FAILED':
      return '/operate/refunds';
    case 'DEAD_LETTER':
    case 'UNMATCHED_PAYMENT':
      return '/operate/aside';
    case 'SALE_APPROVAL':
    case 'SALE_EXTENSION':
    case 'SALE_CHANGE':
    case 'MONEY_RETURN':
    case 'STOCK_CHANGE':
    case 'ORDER_VOID':
    case 'GATE_LOST':
    case 'DRAW_LATE':
    case 'DRAW_VALUE':
      return sale && `/operate/sales/${sale.id}`;
    case 'ORDER_REVIEW':
      return sale && `/operate/sales/${sale.id}/bought`;
    case 'PAYMENT_DISPUTED':
      return order && `/orders/${order.id}`;
    case 'PROVIDER_AWAY':
      return '/operate/sales';
    case 'WEBHOOK_DISABLED':
      return '/operate/webhooks';
  }
}
