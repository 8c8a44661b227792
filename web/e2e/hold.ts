/** Pages that can be held at a moment, to be looked at for as long as that takes. */
import type { Page } from 'playwright-core';

type Stoppable = typeof window & { stopClock(): void };

/**
 * Prepares a page before it is opened. The returned function holds it: its clock stops, no event reaches it, and none of its requests is
 * answered. What it shows then is what the server and the clock had led to.
 */
export async function holdable(page: Page): Promise<() => Promise<void>> {
  let held = false;
  await page.addInitScript(() => {
    const running = performance.now.bind(performance);
    let stopped: number | null = null;
    performance.now = () => stopped ?? running();
    (window as Stoppable).stopClock = () => void (stopped = running());
  });
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => void (held || socket.send(message)));
  });
  return async () => {
    held = true;
    await page.route('**/graphql', () => {}); // neither answered nor refused
    await page.evaluate(() => (window as Stoppable).stopClock());
  };
}
