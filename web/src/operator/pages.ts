/** The admin pages by address, each fetched when it is first opened. */
import { lazy } from '../ui/lazy';

/** What the pages of one sale, order or endpoint get. */
interface Params {
  id: string;
}

/** By route pattern; the first that matches an address is shown. */
export const pages = {
  '/operate': lazy<Params>(async () => (await import('./home')).Home),
  '/operate/sales': lazy<Params>(async () => (await import('./sales')).Sales),
  '/operate/new': lazy<Params>(async () => (await import('./editor')).SaleEditor),
  '/operate/sales/:id/edit': lazy<Params>(async () => (await import('./editor')).SaleEditor),
  '/operate/sales/:id/bought': lazy<Params>(async () => (await import('./bought')).Bought),
  '/operate/sales/:id/report': lazy<Params>(async () => (await import('./report')).ReportPage),
  '/operate/sales/:id': lazy<Params>(async () => (await import('./sale')).SalePage),
  '/operate/goods': lazy<Params>(async () => (await import('./goods')).Goods),
  '/operate/orders': lazy<Params>(async () => (await import('./orders')).Orders),
  '/operate/orders/:id': lazy<Params>(async () => (await import('./money')).OrderMoneyPage),
  '/operate/inbox': lazy<Params>(async () => (await import('./inbox')).Inbox),
  '/operate/refunds': lazy<Params>(async () => (await import('./refunds')).Refunds),
  '/operate/aside': lazy<Params>(async () => (await import('./deadletters')).DeadLetters),
  '/operate/people': lazy<Params>(async () => (await import('./people')).People),
  '/operate/webhooks': lazy<Params>(async () => (await import('./webhooks')).Webhooks),
  '/operate/tokens': lazy<Params>(async () => (await import('./tokens')).Tokens),
  '/operate/webhooks/:id': lazy<Params>(async () => (await import('./webhooks')).Deliveries),
};

/** Fetches the code of the page at an address, and with it the part that the pages share, which has their texts. */
export async function preloadAdminPage(path: string): Promise<void> {
  const at = (pattern: string): boolean => new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}/?$`).test(path);
  await Promise.all([import('./texts'), Object.entries(pages).find(([pattern]) => at(pattern))?.[1].preload()]);
}
