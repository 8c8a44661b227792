import { defineConfig } from 'vitest/config';

/** Journeys through the shop in a real browser, against the real binary. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ['*.test.ts'],
    globalSetup: ['setup.ts'],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    maxWorkers: 2, // each file drives a browser and a server
  },
});
