import { useEffect } from 'preact/hooks';
import type { Purchase } from '@seckill/client/purchase';
import { isDecided } from '@seckill/client/task';
import type { Sale } from '@seckill/client/types';
import { follow } from '../api/client';
import { orders, tasks } from '../api/stores';
import { MyOrderUpdates } from '../documents/payment';

/** Statuses of orders that hold no units. */
const OVER = ['CANCELLED', 'EXPIRED', 'REFUNDED'];
/** When to read the sale again after an order ended, in ms: its units are released shortly after. */
const AFTERMATH_MS = [700, 2_000, 6_000];

/** Reads the sale again when an order of the user changes: paid, expired, cancelled. */
function useOrders(sale: Sale, signedIn: boolean, reload: () => void): void {
  useEffect(() => {
    if (!signedIn) return;
    return follow(MyOrderUpdates, {}, {
      next: ({ myOrderUpdates: { kind, order } }) => {
        orders.put(order.id, order);
        if (kind === 'UPDATE' && order.sale.id === sale.id) reload();
        return false;
      },
      failed: () => {},
      poll: () => Promise.resolve(60_000), // the poll of the sale includes the order
    });
  }, [sale.id, signedIn]);

  const order = sale.viewer?.order;
  const stale = order && OVER.includes(order.status) && sale.viewer?.action !== 'BUY';
  useEffect(() => {
    if (!stale) return;
    const timers = AFTERMATH_MS.map((ms) => setTimeout(reload, ms));
    return () => timers.forEach(clearTimeout);
  }, [order?.id, stale]);
}

/** Connects an attempt with the sale: resumes it after a reload, and follows what was begun elsewhere. */
export function usePurchase(purchase: Purchase, sale: Sale, signedIn: boolean, reload: () => void): void {
  useEffect(() => {
    if (signedIn) purchase.resume();
  }, [purchase, signedIn]);

  useOrders(sale, signedIn, reload);

  const running = sale.viewer?.orderTask;
  useEffect(() => {
    if (!running || !signedIn || purchase.busy) return;
    const known = tasks.of(running.id).peek() ?? running; // the sale may have been read before the task ended
    if (!isDecided(known)) purchase.queued(running.id);
  }, [running?.id, running?.status]);

  const room = sale.viewer?.queueTicket;
  useEffect(() => {
    if (room && signedIn) purchase.found(room.id, room.item.id);
  }, [room?.id]);
}
