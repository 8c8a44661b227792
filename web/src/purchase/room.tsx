/** The waiting room, when more want in than there are permits. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { follow } from '../api/live';
import { request } from '../api/request';
import type { ResultOf } from '../api/tada';
import { LeaveQueue, QueuePlace, type TicketParts } from '../documents/queue';
import { count, span, t } from '../i18n/text';
import { announce } from '../ui/announce';
import type { Purchase } from './attempt';

type Ticket = ResultOf<typeof TicketParts>;

/** The place that is shown: it never moves back, whatever the estimate says. */
export function ahead(before: number | null, now: number): number {
  return before === null ? now : Math.min(before, now);
}

/** The place in the waiting room; being subscribed is what keeps it. */
export function Room({ purchase, ticketId }: { purchase: Purchase; ticketId: string }) {
  const ticket = useSignal<Ticket | null>(null);
  const least = useSignal<number | null>(null);
  const first = useSignal<number | null>(null);
  useEffect(
    () =>
      follow(QueuePlace, { id: ticketId }, {
        next: ({ queuePosition }) => {
          const next = queuePosition.ticket;
          ticket.value = next;
          if (next.position) {
            first.value ??= Math.max(next.position.ahead, 1);
            least.value = ahead(least.peek(), next.position.ahead);
          }
          if (next.status === 'ADMITTED' && next.path) purchase.admitted(next.path, next.item.id);
          if (next.status === 'CLOSED') {
            announce(t('room.closed'));
            purchase.left();
          }
          if (next.status === 'LEFT') purchase.left();
          return next.status !== 'WAITING';
        },
        failed: () => purchase.left(),
        poll: () => Promise.resolve(2_000), // places are told by subscription alone
      }),
    [ticketId],
  );
  const position = ticket.value?.position;
  const share = first.value && least.value !== null ? 1 - least.value / first.value : 0;
  return (
    <div class="note grid gap-2">
      <p class="font-medium">{t('room.title')}</p>
      <p class="text-sm text-soft">{t('room.lead')}</p>
      <progress class="bar" value={share} max={1} aria-label={t('room.title')} />
      <p class="flex flex-wrap gap-x-4 tabular-nums">
        {least.value !== null && <span>{t('queue.ahead', { n: count(least.value) })}</span>}
        <span>{position?.etaSeconds == null ? t('queue.counting') : t('queue.eta', { time: span(position.etaSeconds) })}</span>
        {position?.chancePercent != null && <span>{t('queue.chance', { n: position.chancePercent })}</span>}
      </p>
      <button class="link justify-self-start" onClick={() => void request(LeaveQueue, { input: { ticketId } }).finally(() => purchase.left())}>
        {t('room.leave')}
      </button>
    </div>
  );
}
