/**
 * A ticket of the waiting room. It expires unless it is followed, so it is followed
 * until the buyer is admitted.
 */
import { signal, type Signal } from '@preact/signals-core';
import type { Client } from './client.ts';
import { LeaveQueue, QueuePlace, Ticket as TicketDoc } from './documents/queue.ts';
import { Fault } from './fault.ts';
import type { Ticket } from './types.ts';

/** Poll interval in ms; a ticket expires after thirty seconds without a poll. */
const POLL_MS = 2_000;

/** The number of buyers ahead to show: it never grows, even if the estimate does. */
export function ahead(before: number | null, now: number): number {
  return before === null ? now : Math.min(before, now);
}

async function ask(client: Client, id: string, signal: AbortSignal): Promise<Ticket> {
  const { node } = await client.request(TicketDoc, { id }, signal);
  if (node?.__typename !== 'QueueTicket') throw new Fault('NOT_FOUND', '');
  return node;
}

/** One ticket, from the entry until the buyer is admitted or it has ended. */
export class Waiting {
  readonly ticket: Signal<Ticket | null> = signal(null);
  /** How many were ahead at first, and the least since. */
  readonly first: Signal<number | null> = signal(null);
  readonly least: Signal<number | null> = signal(null);
  /** Stops following: the ticket expires. */
  readonly end: () => void;

  /** `over` is called once, with the last ticket, or null when it is unknown. */
  constructor(
    readonly client: Client,
    readonly id: string,
    over: (ticket: Ticket | null) => void,
  ) {
    let ended = false;
    const once = (ticket: Ticket | null): void => {
      if (!ended) over(ticket);
      ended = true;
    };
    const take = (ticket: Ticket): boolean => {
      if (ended) return true;
      this.#show(ticket);
      if (ticket.status !== 'WAITING') once(ticket);
      return ended;
    };
    const stop = client.follow(QueuePlace, { id }, {
      next: ({ queuePosition }) => take(queuePosition.ticket),
      failed: () => once(null),
      poll: async (signal) => (take(await ask(client, id, signal)) ? null : POLL_MS),
    });
    this.end = () => {
      ended = true;
      stop();
    };
  }

  /** Leaves the queue. */
  leave(): void {
    this.end();
    void this.client.request(LeaveQueue, { input: { ticketId: this.id } }).catch(() => {});
  }

  #show(ticket: Ticket): void {
    const known = this.ticket.peek()?.position;
    if (known && ticket.status === 'WAITING' && (!ticket.position || ticket.position.updatedAt < known.updatedAt)) return; // a late answer
    this.ticket.value = ticket;
    if (!ticket.position) return;
    this.first.value ??= Math.max(ticket.position.ahead, 1);
    this.least.value = ahead(this.least.peek(), ticket.position.ahead);
  }
}
