import { useEffect } from 'preact/hooks';
import { lines, orders, tasks } from '../api/stores';
import { follow } from '../api/live';
import { request } from '../api/request';
import type { Line, Sale, Task } from '../api/types';
import { Task as TaskDoc, TaskStatus } from '../documents/buyer';
import { MyOrderUpdates } from '../documents/payment';
import { t } from '../i18n/text';
import { readOut } from '../ui/live-region';
import type { Attempt, Purchase } from './attempt';

/** Default poll interval in ms. */
const POLL_MS = 1_000;
/** A task that is unknown for this long, in ms, was lost; the server ends known tasks sooner. */
const LOST_MS = 30_000;

const over = (task: Task): boolean => task.status !== 'SUBMITTED';

/** Follows a task to its end, and again when it is queued again. */
function useTask(attempt: Attempt, ended: (task: Task) => void, lost: () => void): void {
  const queued = attempt.step === 'queued' ? attempt : null;
  useEffect(() => {
    if (!queued) return;
    const id = queued.taskId;
    let missing = 0; // since when it is unknown
    const take = (task: Task & { queue: Line | null }): boolean => {
      lines.value = over(task) ? {} : { [task.id]: task.queue }; // one attempt is followed at a time
      const kept = tasks.put(task.id, task);
      if (over(kept)) ended(kept);
      return over(kept);
    };
    return follow(TaskStatus, { id }, {
      next: ({ orderTaskStatus }) => take(orderTaskStatus.orderTask),
      failed: () => {},
      poll: async () => {
        const { orderTask } = await request(TaskDoc, { id });
        if (orderTask) {
          missing = 0;
          return take(orderTask) ? null : (orderTask.pollAfterMs ?? POLL_MS);
        }
        missing ||= performance.now();
        if (performance.now() - missing < LOST_MS) return POLL_MS;
        lost();
        return null;
      },
    });
  }, [queued]);
}

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

/** Connects an attempt with the sale: resumes it after a reload, follows its task, ends it. */
export function usePurchase(purchase: Purchase, sale: Sale, signedIn: boolean, reload: () => void): void {
  useEffect(() => {
    if (signedIn) purchase.resume();
  }, [purchase, signedIn]);

  useOrders(sale, signedIn, reload);

  const running = sale.viewer?.orderTask;
  useEffect(() => {
    if (!running || !signedIn || purchase.busy) return;
    const known = tasks.of(running.id).peek() ?? running; // the sale may have been read before the task ended
    if (!over(known)) purchase.queued(running.id);
  }, [running?.id, running?.status]);

  const { value: attempt } = purchase.attempt;
  const ended = (task: Task): void => {
    if (task.status === 'SUCCEEDED') readOut(t('queue.done'));
    purchase.ended(task);
    reload();
  };
  const room = sale.viewer?.queueTicket;
  useEffect(() => {
    if (room && signedIn) purchase.found(room.id, room.item.id);
  }, [room?.id]);

  useTask(attempt, ended, () => {
    purchase.lost();
    reload();
  });
}
