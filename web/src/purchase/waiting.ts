/**
 * A place in the waiting room. It expires unless it is followed, so it is followed as
 * long as the tab is open, on any page.
 */
import { signal, type Signal } from '@preact/signals';
import { Fault } from '../api/fault';
import { follow } from '../api/live';
import { request } from '../api/request';
import type { ResultOf } from '../api/tada';
import { LeaveQueue, QueuePlace, Ticket as TicketDoc, type TicketParts } from '../documents/queue';
import { t } from '../i18n/text';
import { notify, toast } from '../ui/toast';

/** A place, as the server returns it. */
export type Ticket = ResultOf<typeof TicketParts>;

/** Poll interval in ms; a place expires after thirty seconds without a poll. */
const POLL_MS = 2_000;

/** The shown place: it never moves back when the estimate does. */
export function ahead(before: number | null, now: number): number {
  return before === null ? now : Math.min(before, now);
}

/** Notifies of the end of a place, on any page; null is an unknown place. */
export function notifyEnd(ticket: Ticket | null, title: string): void {
  if (ticket?.status === 'ADMITTED') return ticket.path ? notify(t('room.turn', { title })) : toast(t('room.expired'));
  if (ticket?.endReason === 'ALREADY_ORDERED' || ticket?.endReason === 'PURCHASE_LIMIT_REACHED') return toast(t(`room.${ticket.endReason}`, { title }));
  toast(t(ticket?.status === 'CLOSED' ? 'room.closed' : 'room.lost'));
}

async function ask(id: string): Promise<Ticket> {
  const { node } = await request(TicketDoc, { id });
  if (node?.__typename !== 'QueueTicket') throw new Fault('NOT_FOUND', '');
  return node;
}

/** One place, from the moment it is taken until its turn comes or it is gone. */
export class Waiting {
  readonly ticket: Signal<Ticket | null> = signal(null);
  /** How many were ahead at first, and the least since. */
  readonly first: Signal<number | null> = signal(null);
  readonly least: Signal<number | null> = signal(null);
  /** Stops following: the place expires. */
  readonly end: () => void;

  /** `over` is called once, with the last ticket, or null when it is unknown. */
  constructor(
    readonly id: string,
    over: (ticket: Ticket | null) => void,
  ) {
    const take = (ticket: Ticket): boolean => {
      this.#show(ticket);
      if (ticket.status !== 'WAITING') over(ticket);
      return ticket.status !== 'WAITING';
    };
    this.end = follow(QueuePlace, { id }, {
      next: ({ queuePosition }) => take(queuePosition.ticket),
      failed: () => over(null),
      poll: async () => (take(await ask(id)) ? null : POLL_MS),
    });
  }

  /** Leaves the queue. */
  leave(): void {
    this.end();
    void request(LeaveQueue, { input: { ticketId: this.id } }).catch(() => {});
  }

  #show(ticket: Ticket): void {
    this.ticket.value = ticket;
    if (!ticket.position) return;
    this.first.value ??= Math.max(ticket.position.ahead, 1);
    this.least.value = ahead(this.least.peek(), ticket.position.ahead);
  }
}
