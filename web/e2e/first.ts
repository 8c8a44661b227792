import type { Page } from 'playwright-core';

/** Removes the inlined response to the first query from the HTML, so that the page sends the query and a test can answer it. */
export async function removePreloadedResponse(page: Page): Promise<void> {
  await page.addInitScript(() =>
    new MutationObserver(() => document.getElementById('first')?.remove()).observe(document, { childList: true, subtree: true }),
  );
}
