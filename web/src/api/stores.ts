/** Entities of the server, newest revision by id. */
import { signal } from '@preact/signals';
import { now, reading } from './clock';
import { RevisionStore } from './store';
import { onUserChange, currentUser } from './session';
import type { Card, Entry, TaskPosition, Order, PublicSale, Sale, Stock, Task } from '@seckill/client/types';

/** Sales with all fields of a sale page. Their viewer is the signed-in user. */
export const sales = new RevisionStore<Sale>();
/** Stock by item. */
export const stocks = new RevisionStore<Stock>();
/** Order tasks. */
export const tasks = new RevisionStore<Task>();
/** Positions of order tasks in the queue, by task id. */
export const taskPositions = signal<Record<string, TaskPosition | null>>({});
/** Orders. */
export const orders = new RevisionStore<Order>();

/** Sales as the list showed them, by slug: what their pages show until their own data is there. */
export const cards = new Map<string, Card>();

/** When the known viewer of a sale was read, in ms of server time, by sale. */
const viewerTimes = new Map<string, number>();

/** When the known viewer of a sale was read, in ms of server time; 0 without one. */
export const viewerTime = (saleId: string): number => viewerTimes.get(saleId) ?? 0;

/**
 * Keeps a sale and the stock of its items. Responses and events arrive in any order: of two sales that with the higher revision is kept, and
 * under the same revision that which was read later; of two viewers always that which was read later. A response without a viewer (the server
 * could not read it) keeps the known one.
 */
export function putSale(read: Sale): void {
  const known = sales.of(read.id).peek();
  const at = Date.parse(read.serverTime);
  const later = !known || read.revision > known.revision || (read.revision === known.revision && at >= Date.parse(known.serverTime));
  const mine = known && currentUser.peek() ? known.viewer : null;
  const newer = read.viewer !== null && (!mine || at >= viewerTime(read.id));
  if (newer) viewerTimes.set(read.id, at);
  sales.put(read.id, { ...(later ? read : known), viewer: newer ? read.viewer : mine });
  for (const item of read.items) stocks.put(item.id, item.stock);
  const task = newer ? read.viewer?.orderTask : null;
  if (task) tasks.put(task.id, task);
}

/** Keeps what all viewers see of a sale, as putSale does, with the known viewer. */
export const putPublicSale = (read: PublicSale): void => putSale({ ...read, viewer: null });

/** Keeps a waitlist entry that was just created or left: a viewer that was read before is ignored from now on. */
export function putWaitlistEntry(saleId: string, place: Entry): void {
  const sale = sales.of(saleId).peek();
  if (!sale?.viewer) return;
  if (reading.peek()) viewerTimes.set(saleId, Math.max(viewerTime(saleId), now()));
  const open = ['WAITING', 'OFFERED'].includes(place.status);
  const items = sale.viewer.items.map((each) => (each.item.id === place.item.id ? { ...each, waitlistEntry: open ? place : null } : each));
  sales.put(saleId, { ...sale, viewer: { ...sale.viewer, items, waitlistEntry: place } });
}

onUserChange(() => {
  viewerTimes.clear();
  taskPositions.value = {};
  for (const store of [sales, tasks, orders]) store.clear();
});
