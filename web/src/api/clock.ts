/** The server's clock, for the page: it ticks. */
import { signal } from '@preact/signals';
import { Clock } from '@seckill/client/clock';
import { http } from './http';

const RESYNC_MS = 5 * 60_000;

/** The server's clock. */
export const clock = new Clock(http);

/** The best reading; null until the server has answered once. */
export const { reading } = clock;

/** Server time in ms. The device's own clock until the server has answered. */
export const now = (): number => clock.now();

/** Measures again. Concurrent callers share one run. */
export const sync = (): Promise<void> => clock.sync();

/** Whole seconds of server time; changes once a second, on the second. */
export const second = signal(0);

/** Starts the ticking and the regular sync. */
export function startClock(): void {
  const tick = (): void => {
    second.value = Math.floor(now() / 1000);
    setTimeout(tick, 1000 - (now() % 1000) + 1);
  };
  tick();
  setInterval(() => void sync(), RESYNC_MS);
}
