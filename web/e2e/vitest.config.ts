import { basename } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest journeys, in the order in which they begin: one that begins late would keep a browser waiting at the end. */
const FIRST = ['serve.test.ts', 'states.test.ts', 'admin.test.ts', 'opening.test.ts', 'times.test.ts', 'screens.test.ts', 'line.test.ts', 'demo.test.ts'];

/**
 * The journeys of `make test`: how a buyer comes to a paid order and an operator steers a sale, on Postgres and Redis, and
 * the playground. `make e2e` has all.
 */
const SHORT = ['serve.test.ts', 'buy.test.ts', 'pay.test.ts', 'stripe.test.ts', 'strip.test.ts', 'playground.test.ts', 'keyboard.test.ts'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const named = FIRST.flatMap((name) => files.filter(({ moduleId }) => basename(moduleId) === name));
    return [...named, ...(await super.sort(files.filter((file) => !named.includes(file))))];
  }
}

/** Journeys through the shop in a real browser, against the real binary. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: process.env['SECKILL_JOURNEYS'] === 'short' ? SHORT : ['*.test.ts'],
    globalSetup: ['setup.ts'],
    testTimeout: 1_200_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 3, // each file drives a browser and a server, and waits for half of the time
    sequence: { sequencer: LongestFirst },
  },
});
