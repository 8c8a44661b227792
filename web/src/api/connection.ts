import { signal } from '@preact/signals';

/** How live data comes in, for the pill. */
export type Connection =
  | { state: 'idle' }
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'retrying'; at: number }
  | { state: 'polling' };

/** The connection as it is; `at` counts in performance.now(). */
export const connection = signal<Connection>({ state: 'idle' });

/** A wait of about ms, 20 % shorter or longer, so that clients do not come back all at once. */
export function jitter(ms: number): number {
  return ms * (0.8 + Math.random() * 0.4);
}

/** Wait before the n-th try again, in ms: 0.5 s doubling up to 15 s. */
export function backoff(n: number): number {
  return jitter(Math.min(500 * 2 ** n, 15_000));
}
