/** Where journeys go: the demo, all in one process, or `serve` on Postgres and Redis. */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { demoPerson, startDemo, type Demo, type Person, type Settings } from './shop';
import { startSite, type Site } from './site';

/** What a journey wants to find. */
export interface Wanted {
  people?: number;
  /** A single unit, so that it is soon gone. */
  single?: boolean;
  /** How long a buyer has to pay. */
  window?: string;
  /** Settings of the server that answers. */
  settings?: Settings;
}

/** A sale of the journey's own that is open, and people who have bought nothing yet. */
export interface Stand {
  url: string;
  slug: string;
  /** Which of its items to take; null where there is but one. */
  item: string | null;
  people: Person[];
}

/** Where journeys go. */
export interface Venue {
  /** Whether screens on the way are looked at: once is enough, they are the same everywhere. */
  readonly looks: boolean;
  sell(wanted?: Wanted): Promise<Stand>;
  /** Lets orders be written, where they are not anyhow. */
  startWorker(): Promise<void>;
}

const customers = ['alice', 'bob', 'operator', 'admin'];

/** Every journey finds a demo of its own, so that what it leaves behind disturbs no other. */
export function inTheDemo(): Venue {
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
    looks: false,
    sell: async ({ people = 1, single = false, window = '15m', settings = {} } = {}) => {
      const { url, open } = await begin({ SECKILL_PAYMENT_WINDOW: window, SECKILL_WAITLIST_OFFER: '10m', ...settings });
      const item = single ? 'Kestrel mini drone' : 'Nimbus headphones';
      return { url, slug: open.slug, item, people: customers.slice(0, people).map(demoPerson) };
    },
    startWorker: () => Promise.resolve(),
  };
}

/** `serve` on Postgres and Redis, with an operator and an administrator. */
export interface SiteVenue extends Venue {
  readonly site: Site;
}

/** One site for all; every journey finds a sale and people of its own. */
export function onASite(): SiteVenue {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ SECKILL_WAITLIST_OFFER: '10m', SECKILL_PATH_TTL: '10m' });
  });
  afterAll(() => site?.stop());
  return {
    looks: true,
    get site() {
      return site;
    },
    sell: async ({ people = 1, single = false, window = '15m', settings } = {}) => {
      const url = settings ? await site.startBeside(settings) : site.url;
      const { slug, buyers } = await site.seed({ users: people, stock: single ? 1 : 3, more: ['--payment-window', window], at: url });
      return { url, slug, item: null, people: buyers };
    },
    startWorker: () => site.startWorker(),
  };
}
