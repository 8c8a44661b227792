/** The waiting room, when more want in than there are permits, and the draw before the opening. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { now } from '../api/clock';
import { Fault } from '../api/fault';
import { follow } from '../api/live';
import { request } from '../api/request';
import type { ResultOf } from '../api/tada';
import type { Sale } from '../api/types';
import { LeaveQueue, QueuePlace, Ticket as TicketDoc, type TicketParts } from '../documents/queue';
import { count, span, t } from '../i18n/text';
import { announce } from '../ui/announce';
import { Tiles, useLeft } from '../ui/countdown';
import { toast } from '../ui/toast';
import type { Purchase } from './attempt';
import type { Place } from './press';
import { notify } from './remind';

type Ticket = ResultOf<typeof TicketParts>;

/** Poll at this pace, in ms; a place is kept for thirty seconds of silence. */
const POLL_MS = 2_000;

/** The place that is shown: it never moves back, whatever the estimate says. */
export function ahead(before: number | null, now: number): number {
  return before === null ? now : Math.min(before, now);
}

async function ask(id: string): Promise<Ticket> {
  const { node } = await request(TicketDoc, { id });
  if (node?.__typename !== 'QueueTicket') throw new Fault('NOT_FOUND', '');
  return node;
}

/** The place in the waiting room; being subscribed is what keeps it. */
export function Room({ purchase, place, sale }: { purchase: Purchase; place: Place; sale: Sale }) {
  const ticket = useSignal<Ticket | null>(null);
  const least = useSignal<number | null>(null);
  const first = useSignal<number | null>(null);
  const id = place.ticketId;

  const take = (next: Ticket): boolean => {
    ticket.value = next;
    if (next.position) {
      first.value ??= Math.max(next.position.ahead, 1);
      least.value = ahead(least.peek(), next.position.ahead);
    }
    if (next.status === 'ADMITTED' && next.path) {
      if (!place.pressed) notify(t('room.turn', { title: sale.title }));
      announce(t('room.turn', { title: sale.title }));
      purchase.admitted(place, next.path);
    } else if (next.status !== 'WAITING') {
      if (next.status === 'CLOSED') toast(t('room.closed'));
      purchase.left();
    }
    return next.status !== 'WAITING';
  };

  useEffect(
    () =>
      follow(QueuePlace, { id }, {
        next: ({ queuePosition }) => take(queuePosition.ticket),
        failed: () => purchase.left(),
        poll: async () => (take(await ask(id)) ? null : POLL_MS),
      }),
    [id],
  );

  const leave = (): void => {
    void request(LeaveQueue, { input: { ticketId: id } }).catch(() => {});
    purchase.left();
  };
  const position = ticket.value?.position;
  const early = !position && now() < Date.parse(sale.startsAt);
  return (
    <div class="note grid gap-2">
      <p class="font-medium">{t(early ? 'room.draw' : 'room.title')}</p>
      <p class="text-sm text-soft">{t(early ? 'room.drawLead' : 'room.lead')}</p>
      {position && (
        <>
          <progress class="bar" value={1 - least.value! / first.value!} max={1} aria-label={t('room.title')} />
          <p class="flex flex-wrap gap-x-4 tabular-nums">
            <span>{t('queue.ahead', { n: count(least.value!) })}</span>
            <span>{position.etaSeconds === null ? t('queue.counting') : t('queue.eta', { time: span(position.etaSeconds) })}</span>
            {position.chancePercent !== null && <span>{t('queue.chance', { n: position.chancePercent })}</span>}
          </p>
        </>
      )}
      <button class="link justify-self-start" onClick={leave}>
        {t('room.leave')}
      </button>
    </div>
  );
}

/** The turn of somebody who has not pressed yet: the button is free until it lapses. */
export function Turn({ purchase, until }: { purchase: Purchase; until: number }) {
  const left = useLeft(until);
  useEffect(() => {
    if (left <= 0) {
      toast(t('room.lapsed'));
      purchase.left();
    }
  }, [left <= 0]);
  return (
    <p class="note flex flex-wrap items-center justify-between gap-2 font-medium text-good">
      <span>{t('room.yours')}</span> <Tiles until={until} />
    </p>
  );
}
