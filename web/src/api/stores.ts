/** What the server has told us, newest revision by id. */
import { RevisionStore } from './store';
import { onSwitch, person } from './session';
import type { Entry, Order, Sale, Stock, Task } from './types';

/** Sales with all that a sale page shows. Their viewer is the person who is signed in. */
export const sales = new RevisionStore<Sale>();
/** Stock by item. */
export const stocks = new RevisionStore<Stock>();
/** Attempts to buy. */
export const tasks = new RevisionStore<Task>();
/** Orders. */
export const orders = new RevisionStore<Order>();

/** The person's newest place on the waitlist, by sale. */
const places = new Map<string, Entry>();

/**
 * Keeps a sale and the stock of its items. One that was read as a place was taken may not know of it yet, and one that was
 * read while the server could not tell how the person stands to it says nothing of that.
 */
export function putSale(read: Sale): void {
  const viewer = read.viewer ?? (person.peek() && sales.of(read.id).peek()?.viewer) ?? null;
  const sale = { ...read, viewer };
  const place = sale.viewer?.waitlistEntry ?? places.get(sale.id) ?? null;
  if (place) places.set(sale.id, place);
  sales.put(sale.id, sale.viewer ? { ...sale, viewer: { ...sale.viewer, waitlistEntry: place } } : sale);
  for (const item of sale.items) stocks.put(item.id, item.stock);
  if (sale.viewer?.orderTask) tasks.put(sale.viewer.orderTask.id, sale.viewer.orderTask);
}

/** Keeps a place on the waitlist that was just taken or given up. */
export function putPlace(saleId: string, place: Entry): void {
  places.set(saleId, place);
  const { viewer, ...sale } = sales.of(saleId).peek() ?? { viewer: null };
  if (viewer) sales.put(saleId, { ...(sale as Sale), viewer: { ...viewer, waitlistEntry: place } });
}

onSwitch(() => {
  places.clear();
  for (const store of [sales, tasks, orders]) store.clear();
});
