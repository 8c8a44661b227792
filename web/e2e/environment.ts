/** Environments of the browser tests: the demo in one process, or `serve` on Postgres and Redis. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { demoCredentials, startDemo, type Demo, type Credentials, type Settings } from './shop';
import { startSite, type Site } from './site';

/** Options of the sale that a test needs. */
export interface SaleOptions {
  buyerCount?: number;
  /** Sell a single unit, so that it sells out at once. */
  single?: boolean;
  /** How long a buyer has to pay. */
  window?: string;
  /** Settings of the server that answers. */
  settings?: Settings;
}

/** An open sale for one test, with buyers who have not bought yet. */
export interface TestSale {
  url: string;
  slug: string;
  /** Name of the item to choose; null if the sale has only one. */
  item: string | null;
  buyers: Credentials[];
}

/** A server that the tests run against. */
export interface Environment {
  /** Whether tests check the screens on the way. One environment is enough: screens are the same in all. */
  readonly checksScreens: boolean;
  sell(options?: SaleOptions): Promise<TestSale>;
  /** Starts the worker, if this environment does not run one already. */
  startWorker(): Promise<void>;
}

const customers = ['alice', 'bob', 'operator', 'admin'];

/** Starts a new demo for each sale, so that tests do not affect each other. */
export function demoEnvironment(): Environment {
  let demos: Demo[] = [];
  afterEach(async () => {
    await Promise.all(demos.map((demo) => demo.stop()));
    demos = [];
  });
  const begin = async (settings: Settings = {}): Promise<Demo> => {
    const demo = await startDemo({ SECKILL_LIMITS: 'off', ...settings });
    demos.push(demo);
    return demo;
  };
  return {
    checksScreens: false,
    sell: async ({ buyerCount = 1, single = false, window = '15m', settings = {} } = {}) => {
      const { url, open } = await begin({ SECKILL_PAYMENT_WINDOW: window, SECKILL_WAITLIST_OFFER: '10m', ...settings });
      const item = single ? 'Kestrel mini drone' : 'Nimbus headphones';
      return { url, slug: open.slug, item, buyers: customers.slice(0, buyerCount).map(demoCredentials) };
    },
    startWorker: () => Promise.resolve(),
  };
}

/** `serve` on Postgres and Redis, with an operator and an administrator. */
export interface SiteEnvironment extends Environment {
  readonly site: Site;
}

/** Starts one site for all tests of a file; each test gets its own sale and buyers. */
export function siteEnvironment(): SiteEnvironment {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ SECKILL_WAITLIST_OFFER: '10m', SECKILL_PATH_TTL: '10m' });
  });
  afterAll(() => site?.stop());
  return {
    checksScreens: true,
    get site() {
      return site;
    },
    sell: async ({ buyerCount = 1, single = false, window = '15m', settings } = {}) => {
      const url = settings ? await site.startExtraApi(settings) : site.url;
      const { slug, buyers } = await site.seed({ users: buyerCount, stock: single ? 1 : 3, more: ['--payment-window', window], at: url });
      return { url, slug, item: null, buyers };
    },
    startWorker: () => site.startWorker(),
  };
}
