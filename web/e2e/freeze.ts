/** Freezes a page in one state, so that the state can be checked without a time limit. */
import type { Page } from 'playwright-core';

type Stoppable = typeof window & { stopClock(ahead: number): void };

/**
 * Prepares a page before it is opened. The returned function freezes it: the clock of the page stops (optionally moved ahead, in ms), no
 * event reaches it, and its requests get no response. Until then `rewrite` may change the messages of the WebSocket.
 */
export async function freezable(page: Page, rewrite = (text: string): string => text): Promise<(ahead?: number) => Promise<void>> {
  let frozen = false;
  await page.addInitScript(() => {
    const running = performance.now.bind(performance);
    let stopped: number | null = null;
    performance.now = () => stopped ?? running();
    (window as Stoppable).stopClock = (ahead) => void (stopped = (stopped ?? running()) + ahead);
  });
  await page.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => void (frozen || socket.send(rewrite(String(message)))));
  });
  return async (ahead = 0) => {
    frozen = true;
    await page.route('**/graphql', () => {}); // neither answered nor refused
    await page.evaluate((ms) => (window as Stoppable).stopClock(ms), ahead);
  };
}
