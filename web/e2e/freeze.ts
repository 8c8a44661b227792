/** Pages that can be held at a moment, to be looked at for as long as that takes. */
import type { Page } from 'playwright-core';

type Stoppable = typeof window & { stopClock(ahead: number): void };

/**
 * Prepares a page before it is opened. The returned function holds it: its clock stops, no event reaches it, and none of its requests is
 * answered. What it shows then is what the server and the clock had led to. The clock may be moved ahead, by milliseconds, and the texts
 * that come over the socket may be rewritten before.
 */
export async function holdable(page: Page, rewrite = (text: string): string => text): Promise<(ahead?: number) => Promise<void>> {
  let held = false;
  await page.addInitScript(() => {
    const running = performance.now.bind(performance);
    let stopped: number | null = null;
    performance.now = () => stopped ?? running();
    (window as Stoppable).stopClock = (ahead) => void (stopped = (stopped ?? running()) + ahead);
  });
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => void (held || socket.send(rewrite(String(message)))));
  });
  return async (ahead = 0) => {
    held = true;
    await page.route('**/graphql', () => {}); // neither answered nor refused
    await page.evaluate((ms) => (window as Stoppable).stopClock(ms), ahead);
  };
}
