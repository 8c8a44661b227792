/**
 * The purchases of this tab, one per sale. Leaving the page does not stop one, not even in the waiting room;
 * reloading resumes it.
 */
import { effect } from '@preact/signals';
import { Purchase, type Hooks } from '@seckill/client/purchase';
import { forgetAttempts } from '@seckill/client/pending';
import { salesWithTicket, type StoredTicket } from '@seckill/client/tickets';
import type { Ticket } from '@seckill/client/types';
import type { Waiting } from '@seckill/client/waiting';
import { client } from '../api/client';
import { onUserChange } from '../api/session';
import { tabStore } from '../api/storage';
import { taskPositions, sales, tasks } from '../api/stores';
import { t } from '../i18n/text';
import { readOut } from '../ui/live-region';
import { notify, toast } from '../ui/toast';
import { share } from './shared';

/** Notifies of the end of a place, on any page; null is an unknown place. A turn, and that it expired, are in the status of the sale where that is shown. */
function notifyEnd(ticket: Ticket | null, { title, slug }: StoredTicket): void {
  const shown = !document.hidden && location.pathname === `/s/${slug}`;
  if (ticket?.endReason === 'PATH_INVALID') return shown ? undefined : toast(t('room.expired'));
  if (ticket?.status === 'ADMITTED') return ticket.path && !shown ? notify(t('room.turn', { title })) : undefined; // without a path it was used
  if (ticket?.endReason === 'ALREADY_ORDERED' || ticket?.endReason === 'PURCHASE_LIMIT_REACHED') return toast(t(`room.${ticket.endReason}`, { title }));
  toast(t(ticket?.status === 'CLOSED' ? 'room.closed' : 'room.lost'));
}

/** What the page adds to a purchase: texts, the strip on other pages, the stores. */
function hooksOf(saleId: string, changed: () => void): Hooks {
  return {
    changed,
    task: (task, line) => {
      tasks.put(task.id, task);
      taskPositions.value = line ? { [task.id]: line } : {}; // one attempt is followed at a time
    },
    ended: (task) => {
      if (task.status === 'SUCCEEDED') readOut(t('queue.done'));
    },
    describe: () => {
      const sale = sales.of(saleId).peek();
      return { title: sale?.title ?? '', slug: sale?.slug ?? '' };
    },
    waiting: ({ title, slug }: StoredTicket, waiting: Waiting) =>
      effect(() => {
        const kind = waiting.ticket.value && !waiting.ticket.value.position ? 'joined' : 'room';
        share(saleId, { title, slug, orderId: null, kind, until: null, amount: null });
      }),
    called: (stored, ticket) => {
      const { title, slug, pressed } = stored;
      notifyEnd(ticket, stored);
      if (pressed || ticket?.status !== 'ADMITTED' || !ticket.path) return;
      share(saleId, { title, slug, orderId: null, kind: 'turn', until: Date.parse(ticket.path.expiresAt), amount: null });
    },
    left: () => share(saleId, null),
    refused: () => tabStore.setItem(refusedKey(saleId), 'yes'),
  };
}

/** A purchase of the page. */
export function newPurchase(saleId: string, changed: () => void): Purchase {
  return new Purchase(client, saleId, hooksOf(saleId, changed));
}

const refusedKey = (saleId: string): string => `refused:${saleId}`;

/** Whether an attempt in this tab was refused. */
export const wasRefused = (saleId: string): boolean => tabStore.getItem(refusedKey(saleId)) !== null;

const purchases = new Map<string, Purchase>();

/** The purchase of a sale, created by the first call. `changed` is called when the sale may have changed for the user. */
export function purchaseOf(saleId: string, changed: () => void): Purchase {
  let found = purchases.get(saleId);
  if (!found) purchases.set(saleId, (found = newPurchase(saleId, changed)));
  else found.hooks = hooksOf(saleId, changed); // the page may have been left and opened again
  return found;
}

/** Resumes every waiting room that a reload of this tab interrupted, on any page. */
export function resumeWaitingRooms(): void {
  for (const saleId of salesWithTicket(client.store)) purchaseOf(saleId, () => {}).resume();
}

onUserChange(() => {
  for (const purchase of purchases.values()) purchase.close();
  purchases.clear();
  forgetAttempts(tabStore);
});
