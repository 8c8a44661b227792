import type { Page } from 'playwright-core';

const inlined = /<script type="application\/json" id="first">.*?<\/script>/s;

/** Serves pages without the response to their first query, so that they send it and a test can answer it. */
export async function withoutFirst(page: Page): Promise<void> {
  const isPage = ({ pathname }: URL): boolean => pathname !== '/graphql' && !/\.\w+$/.test(pathname);
  await page.route(isPage, async (route) => {
    if (route.request().resourceType() !== 'document') return route.continue();
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace(inlined, '') });
  });
}
