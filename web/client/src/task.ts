import type { Client } from './client.ts';
import { Task as TaskDoc, TaskStatus } from './documents/purchase.ts';
import type { TaskPosition, Task } from './types.ts';

/** Default poll interval in ms. */
const POLL_MS = 1_000;
/** A task that is unknown for this long, in ms, was lost; the server ends known tasks sooner. */
const LOST_MS = 30_000;

/** Whether a task has ended. */
export const isDecided = (task: Task): boolean => task.status !== 'SUBMITTED';

/** Follows an order task to its end; returns a function that stops it. */
export function followTask(
  client: Client,
  id: string,
  on: { next?(task: Task, line: TaskPosition | null): void; ended(task: Task): void; lost(): void },
): () => void {
  let missing = 0; // since when it is unknown
  let newest = -1;
  const take = ({ queue, ...task }: Task & { queue: TaskPosition | null }): boolean => {
    if (task.revision < newest) return false;
    newest = isDecided(task) ? Infinity : task.revision; // an end is final
    on.next?.(task, isDecided(task) ? null : queue);
    if (isDecided(task)) on.ended(task);
    return isDecided(task);
  };
  return client.follow(TaskStatus, { id }, {
    next: ({ orderTaskStatus }) => take(orderTaskStatus.orderTask),
    poll: async (signal) => {
      const { orderTask } = await client.request(TaskDoc, { id }, signal);
      if (orderTask) {
        missing = 0;
        return take(orderTask) ? null : (orderTask.pollAfterMs ?? POLL_MS);
      }
      missing ||= performance.now();
      if (performance.now() - missing < LOST_MS) return POLL_MS;
      on.lost();
      return null;
    },
  });
}
