/**
 * The server's clock. Every countdown counts in server time: the offset comes
 * from the sample with the least round trip, the error bound is half of it, and
 * time advances by performance.now(), which the user cannot set.
 */
import { signal } from '@preact/signals';
import { Clock } from '../documents/account';
import { post } from './post';

/** The server's clock as measured. */
export interface Reading {
  /** Server epoch in ms minus performance.now(). */
  offset: number;
  /** Largest possible error, in ms. */
  bound: number;
}

const SAMPLES = 5;
const RESYNC_MS = 5 * 60_000;
/** Delay of the next measurement after a failed one, in ms. */
const AGAIN_MS = 5_000;

/** The best reading; null until the server has answered once. */
export const reading = signal<Reading | null>(null);

/** Server time in ms. The device's own clock until the server has answered. */
export function now(): number {
  return reading.peek() ? performance.now() + reading.peek()!.offset : Date.now();
}

/** The reading of one request; sent and received are in ms of performance.now(). */
export function measure(serverTime: string, sent: number, received: number): Reading {
  return { offset: Date.parse(serverTime) - (sent + received) / 2, bound: (received - sent) / 2 };
}

/** Keeps the better of two readings. */
export function better(a: Reading | null, b: Reading): Reading {
  return a && a.bound <= b.bound ? a : b;
}

let syncing: Promise<void> | null = null;

/** Measures again. Concurrent callers share one run. */
export function sync(): Promise<void> {
  return (syncing ??= measureAll().finally(() => (syncing = null)));
}

async function measureAll(): Promise<void> {
  let best: Reading | null = null;
  for (let sample = 0; sample < SAMPLES; sample++) {
    const sent = performance.now();
    const answer = await post(Clock, {}, null).catch(() => null);
    if (!answer?.serverInfo) break;
    best = better(best, measure(answer.serverInfo.serverTime, sent, performance.now()));
    if (!reading.peek()) reading.value = best;
  }
  if (best) reading.value = best;
  else setTimeout(() => void sync(), AGAIN_MS);
}

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
