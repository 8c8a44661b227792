import { basename } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The longest journeys, in the order in which they begin: one that begins late would keep a browser waiting at the end. */
const FIRST = ['serve.test.ts', 'states.test.ts', 'admin.test.ts', 'opening.test.ts', 'times.test.ts', 'screens.test.ts', 'line.test.ts', 'demo.test.ts'];

/**
 * Journeys that look at every page in both languages and both colour schemes, wait for the times of a sale, or repeat on the
 * demo what serve.test.ts does on Postgres and Redis: more than half of the time of all. `make test` leaves them to `make e2e`.
 */
const LONG = ['states.test.ts', 'admin.test.ts', 'screens.test.ts', 'times.test.ts', 'demo.test.ts', 'drawing.test.ts'];

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
    include: ['*.test.ts'],
    exclude: process.env['SECKILL_JOURNEYS'] === 'short' ? LONG : [],
    globalSetup: ['setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 3, // each file drives a browser and a server, and waits for half of the time
    sequence: { sequencer: LongestFirst },
  },
});
