import type { Page } from 'playwright-core';

/** Takes the response to the first query out of pages, so that they send it and a test can answer it. */
export async function withoutFirst(page: Page): Promise<void> {
  await page.addInitScript(() =>
    new MutationObserver(() => document.getElementById('first')?.remove()).observe(document, { childList: true, subtree: true }),
  );
}
