/** A site for browser tests: `serve` on Postgres and Redis, with its own database and key prefix. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Demo, DemoSale, Credentials, Settings } from './shop';

const run = promisify(execFile);
const SLUG_TRIES = 600;
const SLUG_EVERY_MS = 200;

/** A sale of one item with its buyers. */
export interface SeededSale {
  slug: string;
  saleId: string;
  itemId: string;
  buyers: SeededBuyer[];
}

/** An account with its access token, and with a path to the item where the seed issued paths. */
export interface SeededBuyer extends Credentials {
  accessToken: string;
  path: string;
}

/** Options of `seckill seed`. */
export interface Seed {
  users: number;
  stock: number;
  more?: string[];
  /** Address of the process that must know the sale; by default the first one. */
  at?: string;
}

/** A running site with the sales and accounts of the demo, and the seeded ones. */
export interface Site extends Demo {
  seed(seed: Seed): Promise<SeededSale>;
  /** Starts the process that writes orders, once; until then they wait in the queue. */
  startWorker(): Promise<void>;
  /** Starts another API process with its own settings and returns its address. */
  startExtraApi(settings: Settings): Promise<string>;
  /** Puts a message into the order stream that cannot be handled. */
  poison(): Promise<void>;
  /** Raises the amount of all sandbox charges by one cent above the price of the order. */
  overcharge(): Promise<void>;
}

/** Where the private services are: from the environment, else from what scripts/services wrote. */
function services(): { database: URL; redis: string } {
  const file = join(import.meta.dirname, '../../.services/env');
  const written = existsSync(file) ? Object.fromEntries(readFileSync(file, 'utf8').trim().split('\n').map((line) => line.split(/=(.*)/s))) : {};
  const of = (name: string): string => {
    const value = process.env[name] ?? written[name];
    if (!value) throw new Error(`${name} is not set, and there is no .services/env: run \`make services\``);
    return value;
  };
  return { database: new URL(of('SECKILL_TEST_DATABASE_URL')), redis: of('SECKILL_TEST_REDIS_URL') };
}

/** Returns PATH with the programs of Postgres, which Debian does not add. */
function path(): string {
  const root = '/usr/lib/postgresql';
  const found = existsSync(root) ? readdirSync(root).map((version) => join(root, version, 'bin')) : [];
  return [process.env['PATH'], ...found].join(delimiter);
}

/** Starts a process of the site and returns its public address once it listens. */
async function start(env: NodeJS.ProcessEnv, roles: string): Promise<{ child: ChildProcess; address: string }> {
  const args = ['serve', '--roles', roles, '--http-addr', '127.0.0.1:0', '--admin-addr', '127.0.0.1:0'];
  const child = spawn(process.env['SECKILL_BINARY']!, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const said: string[] = [];
  const address = await new Promise<string>((resolve, reject) => {
    createInterface(child.stderr!).on('line', (line) => {
      said.push(line);
      if (!line.includes('"msg":"listening"')) return;
      const found = JSON.parse(line).public; // a process without the API role has none
      resolve(found ? `${found.IP}:${found.Port}` : '');
    });
    child.once('exit', (code) => reject(new Error(`serve ended with ${code}:\n${said.join('\n')}`)));
  });
  return { child, address };
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });

/** Asks the server for the slug of a sale: seed prints only the id. */
async function slugOf(url: string, saleId: string, tries = SLUG_TRIES): Promise<string> {
  const body = JSON.stringify({ query: 'query ($id: ID!) { sale(by: {id: $id}) { slug } }', variables: { id: saleId } });
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { data } = (await response.json()) as { data: { sale: { slug: string } | null } | null };
  if (data?.sale) return data.sale.slug;
  if (!tries) throw new Error(`the server does not know sale ${saleId}`);
  await sleep(SLUG_EVERY_MS); // the catalogue is up to a second old
  return slugOf(url, saleId, tries - 1);
}

/** Creates a site: database, accounts, sales, and the API process. */
export async function startSite(settings: Settings = {}): Promise<Site> {
  const { database, redis } = services();
  const name = `shop_${randomBytes(6).toString('hex')}`;
  const own = new URL(database);
  own.pathname = `/${name}`;
  const patient = new URL(own); // long timeouts, for busy machines
  for (const parameter of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) patient.searchParams.set(parameter, '120000');
  const timeouts = ['dial', 'read', 'write', 'pool'].map((step) => `${step}_timeout=2m`).join('&');
  const env = {
    ...process.env,
    PATH: path(),
    SECKILL_PROFILE: 'development',
    SECKILL_DATABASE_URL: patient.href,
    SECKILL_DATABASE_POOL: '6',
    SECKILL_REDIS_URL: `${redis}?${timeouts}`,
    SECKILL_REDIS_PREFIX: `${name}:`,
    SECKILL_JWT_KEY: randomBytes(48).toString('base64'),
    SECKILL_LIMITS: 'off',
    SECKILL_REQUEST_TIMEOUT: '1m',
    SECKILL_LOG_FORMAT: 'json',
    ...settings,
  };
  const binary = process.env['SECKILL_BINARY']!;
  await run('psql', ['--quiet', '--no-psqlrc', database.href, '--command', `CREATE DATABASE ${name}`], { env });
  await run(binary, ['migrate', 'up'], { env });
  const seeded = await run(binary, ['seed', '--demo', '--json'], { env });
  const [open, soon] = (JSON.parse(seeded.stdout) as { sales: DemoSale[] }).sales;
  const running = [await start(env, 'api,scheduler')];
  const url = `http://${running[0]!.address}`;
  let worker: Promise<void> | null = null;
  return {
    url,
    open: open!,
    soon: soon!,
    seed: async ({ users, stock, more = [], at = url }) => {
      const { stdout } = await run(binary, ['seed', '--json', '--users', String(users), '--stock', String(stock), ...more], { env });
      const { saleId, itemId, users: buyers } = JSON.parse(stdout) as { saleId: string; itemId: string; users: SeededBuyer[] };
      return { slug: await slugOf(at, saleId), saleId, itemId, buyers };
    },
    // The worker sends the bank's webhooks to the API process.
    startWorker: () => (worker ??= start({ ...env, SECKILL_PUBLIC_URL: url }, 'worker').then((one) => void running.push(one))),
    startExtraApi: async (own) => {
      const one = await start({ ...env, ...own }, 'api');
      running.push(one);
      return `http://${one.address}`;
    },
    poison: async () => void (await run('redis-cli', ['-u', redis, 'XADD', `${name}:{s01}:orders`, '*', 'nonsense', 'of no sense'], { env })),
    overcharge: async () =>
      void (await run('psql', ['--quiet', '--no-psqlrc', own.href, '--command', 'UPDATE sandbox_charges SET amount_minor = amount_minor + 1'], { env })),
    stop: async () => {
      await Promise.all(running.map(({ child }) => ended(child)));
      await run('psql', ['--quiet', '--no-psqlrc', database.href, '--command', `DROP DATABASE ${name} WITH (FORCE)`], { env });
      const forget = `redis-cli -u '${redis}' --scan --pattern '${name}:*' | xargs -r redis-cli -u '${redis}' del`;
      await run('sh', ['-c', forget], { env });
    },
  };
}
