import { useEffect } from 'preact/hooks';
import { tasks } from '../api/boards';
import { follow } from '../api/live';
import { request } from '../api/request';
import type { Sale, Task } from '../api/types';
import { Task as TaskDoc, TaskStatus } from '../documents/buyer';
import { t } from '../i18n/text';
import { announce } from '../ui/announce';
import type { Purchase } from './attempt';

/** Poll at this pace when the server names none, in ms. */
const POLL_MS = 1_000;

const over = (task: Task): boolean => task.status !== 'SUBMITTED';

/** Follows an attempt to its end. */
function useTask(id: string | null, ended: (task: Task) => void): void {
  useEffect(() => {
    if (!id) return;
    const take = (task: Task): boolean => {
      const kept = tasks.put(task.id, task);
      if (over(kept)) ended(kept);
      return over(kept);
    };
    return follow(TaskStatus, { id }, {
      next: ({ orderTaskStatus }) => take(orderTaskStatus.orderTask),
      failed: () => {},
      poll: async () => {
        const { orderTask } = await request(TaskDoc, { id });
        if (orderTask && take(orderTask)) return null;
        return orderTask?.pollAfterMs ?? POLL_MS;
      },
    });
  }, [id]);
}

/** Joins an attempt with what the server says of the sale: goes on after a reload, follows the task, ends it. */
export function usePurchase(purchase: Purchase, sale: Sale, signedIn: boolean, reload: () => void): void {
  useEffect(() => {
    if (signedIn) purchase.resume();
  }, [purchase, signedIn]);

  const running = sale.viewer?.orderTask;
  useEffect(() => {
    if (signedIn && running?.status === 'SUBMITTED' && !purchase.busy) purchase.queued(running.id);
  }, [running?.id, running?.status]);

  const { value: attempt } = purchase.attempt;
  useTask(attempt.step === 'queued' ? attempt.taskId : null, (task) => {
    if (task.status === 'SUCCEEDED') announce(t('queue.done'));
    purchase.ended(task);
    reload();
  });
}
