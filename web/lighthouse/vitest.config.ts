import { defineConfig } from 'vitest/config';

/** Lighthouse over the shop that the real binary serves. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ['*.test.ts'],
    globalSetup: ['../e2e/setup.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
});
