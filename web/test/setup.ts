/**
 * Runs effects by a timer of Node and waits for the last of them, because happy-dom removes the
 * functions that Preact would call when a test file ends within a frame of its last render.
 */
import { options } from 'preact';
import { afterAll, vi } from 'vitest';

const later = setTimeout; // not a fake one
let ran: Promise<void> = Promise.resolve();

options.requestAnimationFrame = (flush) => {
  ran = new Promise((resolve) =>
    later(() => {
      flush();
      resolve();
    }),
  );
};

afterAll(() => ran);

const { waitFor } = vi;
vi.waitFor = (callback, limits) => waitFor(callback, { timeout: 120_000, ...(typeof limits === 'object' && limits) }); // for busy machines
