/** What the server has told us, newest revision by id. */
import { Board } from './store';
import { onSwitch } from './session';
import type { Order, Sale, Stock, Task } from './types';

/** Sales with all that a sale page shows. Their viewer is the person who is signed in. */
export const sales = new Board<Sale>();
/** Stock by item. */
export const stocks = new Board<Stock>();
/** Attempts to buy. */
export const tasks = new Board<Task>();
/** Orders. */
export const orders = new Board<Order>();

/** Keeps a sale and the stock of its items. */
export function putSale(sale: Sale): void {
  sales.put(sale.id, sale);
  for (const item of sale.items) stocks.put(item.id, item.stock);
  if (sale.viewer?.orderTask) tasks.put(sale.viewer.orderTask.id, sale.viewer.orderTask);
}

onSwitch(() => {
  for (const board of [sales, tasks, orders]) board.clear();
});
