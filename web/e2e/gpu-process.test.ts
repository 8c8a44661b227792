/** The test browser: a GPU process that hangs does not fail a test. */
import { expect, test } from 'vitest';
import { browserFixture } from './shop';

const it = browserFixture();

test('a click succeeds although the GPU process of the browser hangs', async () => {
  const page = await it.page();
  await page.setContent('<button onclick="document.title = \'pressed\'">Press</button>');
  const session = await page.context().browser()!.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  process.kill(processInfo.find(({ type }) => type === 'GPU')!.id, 'SIGSTOP');
  await page.getByRole('button').click({ timeout: 300_000 });
  expect(await page.title()).toBe('pressed');
});
