// GraphiQL in a real browser: it loads without any other host and under its
// content security policy, and runs the current text of the editor at once. GraphiQL reads
// the document 100 ms after the last key; the test delays that to a minute.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';
import { chromium } from 'playwright-core';
import { anySale, waitTimeout, url } from '../../server.mjs';

const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);

test('the playground works without any other host', { timeout: 3 * waitTimeout }, async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(waitTimeout);
    const complaints = [];
    const hosts = new Set();
    page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (r) => r.url().startsWith('http') && hosts.add(new URL(r.url()).origin));
    await page.addInitScript(() => {
      const { setTimeout } = window;
      window.setTimeout = (f, ms, ...args) => setTimeout(f, ms === 100 ? 60_000 : ms, ...args);
    });
    await page.goto(`${url}/playground`);
    const run = page.getByRole('button', { name: /Execute query/ });
    await run.waitFor();
    const tabs = page.getByRole('tab');
    assert.ok((await tabs.count()) >= 1, 'there are no tabs');

    const type = async (text) => {
      await page.locator('.graphiql-query-editor .CodeMirror').click();
      await page.keyboard.press('Control+A');
      await page.keyboard.insertText(text);
    };
    const answer = page.locator('.result-window');
    await type('{ serverInfo { version } }');
    await run.click();
    await answer.getByText('"version"').waitFor();

    await type('query Renamed { __typename }'); // the name of the tab's first operation is gone
    await run.click();
    await answer.getByText('"Query"').waitFor();

    await type(`subscription { saleStatus(saleId: "${await anySale()}") { kind } }`);
    await run.click();
    await answer.getByText('"SNAPSHOT"').waitFor();
    await page.getByRole('button', { name: /Stop query/ }).click();

    assert.deepEqual([...hosts], [url]);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
});
