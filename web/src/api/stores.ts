/** Entities of the server, newest revision by id. */
import { signal } from '@preact/signals';
import { RevisionStore } from './store';
import { onSwitch, person } from './session';
import type { Entry, Line, Order, Sale, Stock, Task } from '@seckill/client/types';

/** Sales with all fields of a sale page. Their viewer is the signed-in user. */
export const sales = new RevisionStore<Sale>();
/** Stock by item. */
export const stocks = new RevisionStore<Stock>();
/** Order tasks. */
export const tasks = new RevisionStore<Task>();
/** Places of order tasks in the line of orders, by task. */
export const lines = signal<Record<string, Line | null>>({});
/** Orders. */
export const orders = new RevisionStore<Order>();

/** The user's newest waitlist entry, by sale. */
const places = new Map<string, Entry>();

/**
 * Keeps a sale and the stock of its items. A sale that was read while the waitlist was joined may miss the entry, and one
 * without a viewer, which the server could not read, keeps the known one.
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

/** Keeps a waitlist entry that was just created or left. */
export function putPlace(saleId: string, place: Entry): void {
  places.set(saleId, place);
  const { viewer, ...sale } = sales.of(saleId).peek() ?? { viewer: null };
  if (viewer) sales.put(saleId, { ...(sale as Sale), viewer: { ...viewer, waitlistEntry: place } });
}

onSwitch(() => {
  places.clear();
  lines.value = {};
  for (const store of [sales, tasks, orders]) store.clear();
});
