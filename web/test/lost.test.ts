import { h, render } from 'preact';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { newPurchase } from '../src/purchase/attempt';
import { usePurchase } from '../src/purchase/follow';
import { stubWebSocket, sale, server, T0, type Reply, type StubStream } from './shop';

beforeEach(() => {
  vi.useFakeTimers({ now: T0 });
  const tokens = { accessToken: 'a', accessTokenExpiresAt: new Date(T0 + 3_600_000).toISOString() };
  startSession(tokens, { id: 'usr_1', displayName: 'A', account: 'a', role: 'CUSTOMER' });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

// Redis lost its last second of writes in a crash, and no server remembers the task.
test('a task that the server does not know is given up, and the user can try again', async () => {
  const streams: StubStream[] = [];
  stubWebSocket(streams);
  const asked = server({ Task: Array<Reply>(100).fill({ orderTask: null }) });
  const reload = vi.fn<() => void>();
  const it = newPurchase('sal_1', reload);
  const offer = sale();
  const Page = (): null => (usePurchase(it, offer, true, reload), null);
  render(h(Page, {}), document.body);
  it.queued('tsk_1');
  const pass = async (seconds: number): Promise<void> => {
    for (; seconds > 0; seconds--) {
      await vi.advanceTimersByTimeAsync(1_000);
      await vi.dynamicImportSettled();
      for (const stream of streams.splice(0)) if (stream.name === 'TaskStatus') stream.fail('NOT_FOUND');
    }
  };
  await pass(25);
  expect(asked.length).toBeGreaterThan(5);
  expect(it.attempt.value.step).toBe('queued');
  await pass(15);
  expect(it.attempt.value.step).toBe('broken');
  expect(it.busy).toBe(false);
  expect(reload).toHaveBeenCalled();
  const before = asked.length;
  await pass(60);
  expect(asked.length).toBe(before);
  render(null, document.body);
});
