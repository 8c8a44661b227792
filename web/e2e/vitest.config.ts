import { basename } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest test files, which start first in this order: started late, one would run alone at the end. */
const FIRST = ['serve.test.ts', 'states.test.ts', 'admin.test.ts', 'opening.test.ts', 'times.test.ts', 'screens.test.ts', 'connection.test.ts', 'demo.test.ts'];

/**
 * The tests of `make test`: a buyer pays an order and an operator runs a sale, on Postgres and Redis, and the playground.
 * `make e2e` runs all.
 */
const SHORT = ['serve.test.ts', 'buy.test.ts', 'pay.test.ts', 'stripe.test.ts', 'strip.test.ts', 'playground.test.ts', 'keyboard.test.ts', 'slow.test.ts'];

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
    maxWorkers: 3, // a file starts a browser and a server, and is idle half of the time
    sequence: { sequencer: LongestFirst },
  },
});
