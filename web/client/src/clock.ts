/**
 * The server's clock. Every countdown counts in server time: the offset comes
 * from the sample with the least round trip, the error bound is half of it, and
 * time advances by performance.now(), which the user cannot set.
 */
import { signal, type Signal } from '@preact/signals-core';
import type { Http } from './http.ts';
import { Clock as ClockDoc } from './documents/server.ts';

/** The server's clock as measured. */
export interface Reading {
  /** Server epoch in ms minus performance.now(). */
  offset: number;
  /** Largest possible error, in ms. */
  bound: number;
}

const SAMPLES = 5;
/** Delay of the next measurement after a failed one, in ms. */
const AGAIN_MS = 5_000;

/** The reading of one request; sent and received are in ms of performance.now(). */
export function measure(serverTime: string, sent: number, received: number): Reading {
  return { offset: Date.parse(serverTime) - (sent + received) / 2, bound: (received - sent) / 2 };
}

/** Keeps the better of two readings. */
export function better(a: Reading | null, b: Reading): Reading {
  return a && a.bound <= b.bound ? a : b;
}

/** The clock of one server. */
export class Clock {
  /** The best reading; null until the server has answered once. */
  readonly reading: Signal<Reading | null> = signal(null);
  #syncing: Promise<void> | null = null;

  constructor(readonly http: Http) {}

  /** Server time in ms. The device's own clock until the server has answered. */
  now(): number {
    const reading = this.reading.peek();
    return reading ? performance.now() + reading.offset : Date.now();
  }

  /** The latest time that the server's clock can show now, in ms. */
  latest(): number {
    return this.now() + (this.reading.peek()?.bound ?? 0);
  }

  /** Measures again. Concurrent callers share one run. */
  sync(): Promise<void> {
    return (this.#syncing ??= this.#measureAll().finally(() => (this.#syncing = null)));
  }

  async #measureAll(): Promise<void> {
    let best: Reading | null = null;
    for (let sample = 0; sample < SAMPLES; sample++) {
      const sent = performance.now();
      const answer = await this.http.post(ClockDoc, {}, null).catch(() => null);
      if (!answer?.serverInfo) break;
      best = better(best, measure(answer.serverInfo.serverTime, sent, performance.now()));
      if (!this.reading.peek()) this.reading.value = best;
    }
    if (best) this.reading.value = best;
    else setTimeout(() => void this.sync(), AGAIN_MS);
  }
}
