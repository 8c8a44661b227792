import { render } from 'preact';
import { expect, test, vi } from 'vitest';
import type { AdminSale } from '../src/operator/acts';
import { useAdminSale } from '../src/operator/live';
import { server } from './shop';

test('where streams are blocked, a sale that takes long to load is loaded one time after the other', async () => {
  vi.useFakeTimers();
  server({}); // no streams
  class Blocked {
    onclose = (_: object): void => {};
    constructor() {
      queueMicrotask(() => this.onclose({ code: 1006 }));
    }
    close(): void {}
  }
  vi.stubGlobal('WebSocket', Blocked); // of either kind
  let loads = 0;
  let running = 0;
  let most = 0;
  const reload = (): Promise<void> => {
    loads++;
    most = Math.max(most, ++running);
    return new Promise((done) => setTimeout(() => (running--, done()), 10_000));
  };
  const Page = () => (useAdminSale({ id: 'sal_1', revision: 1 } as AdminSale, reload), null);
  render(<Page />, document.body);
  for (let s = 0; s < 180; s++) {
    await vi.dynamicImportSettled();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(loads).toBeGreaterThan(3);
  expect(most).toBe(1);
  render(null, document.body);
  vi.useRealTimers();
});
