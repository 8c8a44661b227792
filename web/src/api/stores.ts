/** Entities of the server, newest revision by id. */
import { signal } from '@preact/signals';
import { RevisionStore } from './store';
import { onUserChange, currentUser } from './session';
import type { Entry, TaskPosition, Order, Sale, Stock, Task } from '@seckill/client/types';

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

/** The user's newest waitlist entry, by sale. */
const waitlistEntries = new Map<string, Entry>();

/**
 * Keeps a sale and the stock of its items. A response without a viewer (the server could not read it) keeps the known viewer.
 * A response that was read before the user joined the waitlist keeps the known waitlist entry.
 */
export function putSale(read: Sale): void {
  const viewer = read.viewer ?? (currentUser.peek() && sales.of(read.id).peek()?.viewer) ?? null;
  const sale = { ...read, viewer };
  const place = sale.viewer?.waitlistEntry ?? waitlistEntries.get(sale.id) ?? null;
  if (place) waitlistEntries.set(sale.id, place);
  sales.put(sale.id, sale.viewer ? { ...sale, viewer: { ...sale.viewer, waitlistEntry: place } } : sale);
  for (const item of sale.items) stocks.put(item.id, item.stock);
  if (sale.viewer?.orderTask) tasks.put(sale.viewer.orderTask.id, sale.viewer.orderTask);
}

/** Keeps a waitlist entry that was just created or left. */
export function putWaitlistEntry(saleId: string, place: Entry): void {
  waitlistEntries.set(saleId, place);
  const { viewer, ...sale } = sales.of(saleId).peek() ?? { viewer: null };
  if (viewer) sales.put(saleId, { ...(sale as Sale), viewer: { ...viewer, waitlistEntry: place } });
}

onUserChange(() => {
  waitlistEntries.clear();
  taskPositions.value = {};
  for (const store of [sales, tasks, orders]) store.clear();
});
