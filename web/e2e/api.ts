/** Test setup through the API: sales with given prices and requirements, addresses, push subscriptions. */
import { createECDH, randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { demoCredentials, type Demo, type Credentials } from './shop';
import type { SeededBuyer } from './site';

/** Delay until a sale opens, in ms: long enough to preload it on a busy machine. */
const OPENS_MS = 30_000;
const TRIES = 900;
const EVERY_MS = 200;

/** Asks the API of a shop; fails on errors and refusals. */
async function ask<T>(url: string, token: string, query: string, variables: object = {}, more: Record<string, string> = {}): Promise<T> {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }), ...more };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query, variables }) });
  const { data, errors } = (await response.json()) as { data: { payload: T & { userErrors?: object[] } } | null; errors?: object[] };
  if (!data?.payload || errors || data.payload.userErrors?.length) throw new Error(`${query}: ${JSON.stringify(errors ?? data)}`);
  return data.payload;
}

/** Runs a mutation with one input. */
const mutate = <T>(url: string, token: string, name: string, selection: string, input: object, headers?: Record<string, string>): Promise<T> =>
  ask(url, token, `mutation ($input: ${name[0]!.toUpperCase()}${name.slice(1)}Input!) { payload: ${name}(input: $input) { ${selection} userErrors { code message } } }`, { input }, headers);

/** The access token of an account. */
export async function tokenOf({ url }: Demo, { account, password }: Credentials): Promise<string> {
  const { tokens } = await mutate<{ tokens: { accessToken: string } }>(url, '', 'login', 'tokens { accessToken }', { account, password });
  return tokens.accessToken;
}

/** Registers a push subscription with a fake endpoint for an account. */
export async function subscribeBrowser(demo: Demo, credentials: Credentials, label: string): Promise<void> {
  const browser = createECDH('prime256v1');
  const input = {
    endpoint: `https://updates.push.services.mozilla.com/wpush/v2/${randomUUID()}`,
    p256dh: browser.generateKeys('base64url'),
    auth: randomBytes(16).toString('base64url'),
    label,
  };
  await mutate(demo.url, await tokenOf(demo, credentials), 'subscribePush', 'settings { reaching }', input);
}

/** Adds an address to the book of an account. */
export async function saveAddress(demo: Demo, credentials: Credentials, address: object): Promise<void> {
  await mutate(demo.url, await tokenOf(demo, credentials), 'saveAddress', 'address { id }', address);
}

/** A sale of products at one price. */
export interface OpenSale {
  title: string;
  currencyCode: string;
  price: string;
  listPrice: string;
  requiresAddress?: boolean;
  /** The accent colour; that of the installation unless given. */
  accent?: string;
  /** How many products it has; 1 unless given. */
  products?: number;
  /** Names of the products; made of the title unless given. */
  names?: string[];
  /** Units of each product; 5 unless given. */
  stock?: number[];
  /** Markdown. */
  rules?: string;
  /** The limit of a buyer over all products; none unless given. */
  purchaseLimit?: number;
  /** The rules of a draw; a rush unless given. */
  draw?: { entrySeconds: number; offerSeconds: number };
}

/** Creates, approves and schedules sales, waits until they are open, and returns their slugs. */
export async function openSales(demo: Demo, sales: OpenSale[]): Promise<string[]> {
  const slugs = await scheduleSales(demo, sales, OPENS_MS);
  for (const slug of slugs) await opened(demo, slug);
  return slugs;
}

/** Creates, approves, schedules and preloads sales, as an operator and an administrator, and returns their slugs. */
export async function scheduleSales(demo: Demo, sales: OpenSale[], opensInMs: number): Promise<string[]> {
  const { url } = demo;
  const [operator, admin] = await Promise.all(['operator', 'admin'].map((who) => tokenOf(demo, demoCredentials(who))));
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  return Promise.all(
    sales.map(async ({ title, currencyCode, price, listPrice, requiresAddress = false, products = 1, names = [], stock = [], rules, purchaseLimit = null, accent = null, draw = null }) => {
      const items = await Promise.all(
        ['lamp', 'chair'].slice(0, products).map(async (what, n) => {
          const { goods } = await mutate<{ goods: { id: string } }>(url, operator!, 'createGoods', 'goods { id }', { name: names[n] ?? `${title} ${what}`, listPrice: { amount: listPrice, currencyCode } });
          return { goodsId: goods.id, price: { amount: price, currencyCode }, stock: stock[n] ?? 5, purchaseLimit: Math.min(2, stock[n] ?? 5) };
        }),
      );
      const { sale } = await mutate<{ sale: { id: string; slug: string } }>(url, operator!, 'createSale', 'sale { id slug }', { title, startsAt: at(3_600_000), endsAt: at(7_200_000), items, rules, requiresAddress, purchaseLimit, accent, draw });
      const saleId = sale.id;
      await mutate(url, operator!, 'submitSale', 'sale { id }', { saleId });
      await mutate(url, admin!, 'approveSale', 'sale { id }', { saleId });
      const { intervention } = await mutate<{ intervention: { id: string } }>(url, operator!, 'scheduleSale', 'intervention { id }', { saleId, startsAt: at(opensInMs), endsAt: at(opensInMs + 3_600_000) });
      await mutate(url, admin!, 'decideIntervention', 'intervention { id }', { interventionId: intervention.id, confirm: true });
      await mutate(url, operator!, 'preheatSale', 'sale { id }', { saleId });
      return sale.slug;
    }),
  );
}

/** Orders a unit of a seeded item for each buyer, all from one browser. */
export async function orderFromOneBrowser({ url }: Demo, itemId: string, buyers: SeededBuyer[]): Promise<void> {
  const device = randomBytes(40).toString('base64url'); // its first 16 bytes name the browser
  const headers = { 'x-seckill-session': 'cookie', cookie: `seckill_device=${device}` };
  const place = ({ accessToken, path }: SeededBuyer) => mutate(url, accessToken, 'placeOrder', 'orderTask { id }', { itemId, pathToken: path, idempotencyKey: randomUUID() }, headers);
  await Promise.all(buyers.map(place));
}

/** Waits until a sale is open. */
export async function opened(demo: Demo, slug: string, tries = TRIES): Promise<void> {
  const { phase } = await ask<{ phase: string }>(demo.url, '', 'query ($slug: String!) { payload: sale(by: {slug: $slug}) { phase } }', { slug });
  if (phase === 'LIVE') return;
  if (!tries) throw new Error(`the sale ${slug} is ${phase}`);
  await sleep(EVERY_MS);
  await opened(demo, slug, tries - 1);
}

/** Runs a mutation on a sale as an administrator, with a note that buyers see. */
async function step(demo: Demo, name: string, slug: string, note: string): Promise<void> {
  const { id } = await ask<{ id: string }>(demo.url, '', 'query ($slug: String!) { payload: sale(by: {slug: $slug}) { id } }', { slug });
  await mutate(demo.url, await tokenOf(demo, demoCredentials('admin')), name, 'sale { id }', { saleId: id, note });
}

/** The ticket of a buyer in the waiting room of a sale; the server may show a room a second after its first buyer has entered. */
export async function ticketOf(demo: Demo, who: Credentials, slug: string, tries = TRIES): Promise<string> {
  const query = 'query ($slug: String!) { payload: sale(by: {slug: $slug}) { viewer { queueTicket { id } } } }';
  const { viewer } = await ask<{ viewer: { queueTicket: { id: string } | null } }>(demo.url, await tokenOf(demo, who), query, { slug });
  if (viewer.queueTicket) return viewer.queueTicket.id;
  if (!tries) throw new Error('the buyer has no ticket');
  await sleep(EVERY_MS);
  return ticketOf(demo, who, slug, tries - 1);
}

/** Waits until a buyer was admitted, and the admission has expired. */
export async function turnExpired(demo: Demo, who: Credentials, ticketId: string): Promise<void> {
  const token = await tokenOf(demo, who);
  const query = 'query ($id: ID!) { payload: node(id: $id) { ... on QueueTicket { status path { token } } } }';
  for (let tries = TRIES; ; tries--) {
    const { status, path } = await ask<{ status: string; path: object | null }>(demo.url, token, query, { id: ticketId });
    if (status === 'ADMITTED' && !path) return;
    if (!tries || status === 'LEFT') throw new Error(`the ticket is ${status}`);
    await sleep(EVERY_MS);
  }
}

/** Cancels the orders of a buyer that were not paid. */
export async function cancelOrders(demo: Demo, who: Credentials): Promise<void> {
  const token = await tokenOf(demo, who);
  const { edges } = await ask<{ edges: { node: { id: string } }[] }>(demo.url, token, 'query { payload: myOrders(first: 10, filter: {statuses: [PENDING_PAYMENT]}) { edges { node { id } } } }');
  for (const { node } of edges) await mutate(demo.url, token, 'cancelOrder', 'order { id }', { orderId: node.id });
}

/** Pauses a sale. */
export const pauseSale = (demo: Demo, slug: string, note: string): Promise<void> => step(demo, 'pauseSale', slug, note);

/** Resumes a paused sale. */
export const resumeSale = (demo: Demo, slug: string): Promise<void> => step(demo, 'resumeSale', slug, 'It goes on.');

/** Ends a sale; one that is not open is cancelled. */
export const endSale = (demo: Demo, slug: string, note: string): Promise<void> => step(demo, 'endSale', slug, note);

/** Approves the refunds that were requested. */
export async function approveRefunds(demo: Demo): Promise<void> {
  const token = await tokenOf(demo, demoCredentials('operator'));
  const { edges } = await ask<{ edges: { node: { id: string } }[] }>(demo.url, token, 'query { payload: refunds(first: 10, filter: {states: [REQUESTED]}) { edges { node { id } } } }');
  for (const { node } of edges) await mutate(demo.url, token, 'decideRefund', 'order { id }', { refundId: node.id, approve: true });
}

/** Creates products one after the other, and returns their ids. */
export async function createProducts(demo: Demo, names: string[]): Promise<string[]> {
  const token = await tokenOf(demo, demoCredentials('operator'));
  const ids: string[] = [];
  for (const name of names) {
    const { goods } = await mutate<{ goods: { id: string } }>(demo.url, token, 'createGoods', 'goods { id }', { name, listPrice: { amount: '10.00', currencyCode: 'EUR' } });
    ids.push(goods.id);
  }
  return ids;
}

/** Writes a draft of one product, opening after some ms, and returns its id. */
export async function createDraft(demo: Demo, title: string, goodsId: string, opensInMs = 3_600_000): Promise<string> {
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  const item = { goodsId, price: { amount: '9.00', currencyCode: 'EUR' }, stock: 5, purchaseLimit: 1 };
  const input = { title, startsAt: at(opensInMs), endsAt: at(opensInMs + 3_600_000), items: [item] };
  const { sale } = await mutate<{ sale: { id: string } }>(demo.url, await tokenOf(demo, demoCredentials('operator')), 'createSale', 'sale { id }', input);
  return sale.id;
}

/** Submits a draft for review. */
export async function submitDraft(demo: Demo, saleId: string): Promise<void> {
  await mutate(demo.url, await tokenOf(demo, demoCredentials('operator')), 'submitSale', 'sale { id }', { saleId });
}

/** The names of the products of a sale. */
export async function productsOf(demo: Demo, id: string): Promise<string[]> {
  const token = await tokenOf(demo, demoCredentials('operator'));
  const { items } = await ask<{ items: { goods: { name: string } }[] }>(demo.url, token, 'query ($id: ID!) { payload: sale(by: {id: $id}) { items { goods { name } } } }', { id });
  return items.map(({ goods }) => goods.name);
}
