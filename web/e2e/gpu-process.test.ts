/** The browser that the journeys drive: a drawing process that hangs does not end a journey. */
import { expect, test } from 'vitest';
import { curtain } from './shop';

const it = curtain();

test('a click is made although the drawing process of the browser hangs', async () => {
  const page = await it.page();
  await page.setContent('<button onclick="document.title = \'pressed\'">Press</button>');
  const session = await page.context().browser()!.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  process.kill(processInfo.find(({ type }) => type === 'GPU')!.id, 'SIGSTOP');
  await page.getByRole('button').click({ timeout: 300_000 });
  expect(await page.title()).toBe('pressed');
});
