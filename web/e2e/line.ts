/** A slow line: what a page sends and receives is delayed, over HTTP and over the WebSocket, in the order in which it was sent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext } from 'playwright-core';

/** Delays every message of a context by half of a round trip in each direction. Call it before a page is opened. */
export async function slowLine(context: BrowserContext, roundTripMs: number): Promise<void> {
  if (!roundTripMs) return;
  const half = roundTripMs / 2;
  await context.route('**/graphql', async (route) => {
    await sleep(half);
    const response = await route.fetch().catch(() => null); // the test is over
    if (!response) return;
    await sleep(half);
    await route.fulfill({ response }).catch(() => {}); // the page has gone on
  });
  await context.routeWebSocket('**/graphql', (socket) => {
    const server = socket.connectToServer();
    const inOrder = (send: (text: string | Buffer) => void): ((text: string | Buffer) => void) => {
      let last: Promise<void> = Promise.resolve();
      return (text) => {
        const due = sleep(half);
        last = last.then(() => due).then(() => send(text));
      };
    };
    socket.onMessage(inOrder((text) => server.send(text)));
    server.onMessage(inOrder((text) => socket.send(text)));
  });
}
