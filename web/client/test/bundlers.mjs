/**
 * Builds a page with the packed client in Vite, esbuild, webpack and Next, without settings, and buys with each build in a
 * real Chromium on a real server. SECKILL_BINARY names the server, CHROMIUM the browser (scripts/test-web bundlers sets both).
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from '../../node_modules/playwright-core/index.mjs';

/** A folder of its own, as a shop has it: bundlers look for settings and packages in the folders above. */
const here = mkdtempSync(join(tmpdir(), 'bundlers-'));
const dist = join(here, 'dist');
const run = (name, args, cwd = here) => execFileSync(process.execPath, [join(here, 'node_modules', name), ...args], { cwd, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } });
const npm = (...args) => execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel', 'error'], { cwd: here, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' }).trim();

/** Installs the client as it is packed, beside the bundlers. */
function install() {
  for (const name of ['app', 'next', 'package.json', 'package-lock.json']) cpSync(join(import.meta.dirname, name), join(here, name), { recursive: true });
  mkdirSync(dist);
  npm('ci');
  const packed = npm('pack', join(import.meta.dirname, '..'), '--pack-destination', dist).split('\n').at(-1);
  npm('install', '--no-save', '--prefer-offline', join(dist, packed));
}

const browsers = ['chromium', 'chromium-headless-shell', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`);
const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript' };

/** Serves a folder; returns its origin. */
async function serve(folder, headers = {}) {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, 'http://page');
    const file = join(folder, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream', ...headers });
    createReadStream(file).pipe(response);
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  servers.push(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

const servers = [];
const page = (script) => `<!doctype html><title>Bundled</title><output></output><script type="module" src="${script}"></script>`;

const builds = {
  async vite() {
    run('vite/bin/vite.js', ['build', join(here, 'app'), '--outDir', join(dist, 'vite'), '--logLevel', 'error']);
    return serve(join(dist, 'vite'));
  },
  /** The same under a Content-Security-Policy without workers. */
  async 'vite without workers'() {
    return serve(join(dist, 'vite'), { 'content-security-policy': "worker-src 'none'" });
  },
  /** esbuild leaves the worker out: its file is not found. */
  async esbuild() {
    execFileSync(join(here, 'node_modules/.bin/esbuild'), ['app/main.js', '--bundle', '--format=esm', `--outfile=${dist}/esbuild/main.js`, '--log-level=error'], { cwd: here });
    writeFileSync(join(dist, 'esbuild/index.html'), page('main.js'));
    return serve(join(dist, 'esbuild'));
  },
  async webpack() {
    run('webpack/bin/webpack.js', ['--mode', 'production', '--entry', './app/main.js', '--output-path', join(dist, 'webpack')]);
    writeFileSync(join(dist, 'webpack/index.html'), page('main.js'));
    return serve(join(dist, 'webpack'));
  },
  async next() {
    const folder = join(here, 'next');
    run('next/dist/bin/next', ['build'], folder);
    const child = spawn(process.execPath, [join(here, 'node_modules/next/dist/bin/next'), 'start', '-p', '0', '-H', '127.0.0.1'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    servers.push(() => child.kill());
    for await (const line of createInterface(child.stdout)) {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (address) return address;
    }
    throw new Error('next start ended');
  },
};

/** Builds that compute the proof of work on the page, and say so once. */
const onThePage = ['esbuild', 'vite without workers'];

async function startDemo(origins) {
  const args = ['demo', '--http-addr', '127.0.0.1:0', '--admin-addr', '127.0.0.1:0', '--log-level', 'warn'];
  const child = spawn(process.env.SECKILL_BINARY, args, { env: { ...process.env, SECKILL_ALLOWED_ORIGINS: origins.join(','), SECKILL_LIMITS: 'off' }, stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(() => child.kill());
  for await (const line of createInterface(child.stdout)) {
    const sale = /Open now .*?(http\S+?)\/s\/(\S+)/.exec(line);
    if (sale) {
      child.stdout.resume();
      return { api: sale[1], slug: sale[2] };
    }
  }
  throw new Error('the demo ended');
}

let failed = 0;
try {
  install();
  const pages = {};
  for (const [name, build] of Object.entries(builds)) {
    const began = performance.now();
    pages[name] = await build();
    console.log(`${name}: built in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
  const { api, slug } = await startDemo(Object.values(pages));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? browsers.find(existsSync), args: ['--no-sandbox'] });
  servers.push(() => browser.close());
  const accounts = ['alice@demo.example', 'bob@demo.example']; // by turns: cancelled orders make a buyer wait
  for (const [i, [name, origin]] of Object.entries(pages).entries()) {
    const tab = await browser.newPage();
    const warnings = [];
    tab.on('console', (message) => message.text().startsWith('@seckill/client') && warnings.push(message.text()));
    tab.on('pageerror', (error) => warnings.push(`error: ${error.message}`));
    await tab.goto(`${origin}/?${new URLSearchParams({ api, sale: slug, account: accounts[i % 2] })}`);
    const shown = await tab.waitForFunction(() => document.querySelector('output')?.textContent, null, { timeout: 120_000 });
    const text = await shown.jsonValue();
    const expected = onThePage.includes(name) ? 1 : 0;
    const component = name !== 'next' || (await tab.locator('seckill-drop h2').innerText({ timeout: 60_000 })).length > 0;
    const good = /^bought \S+ over live$/.test(text) && warnings.length === expected && component;
    if (!good) failed++;
    console.log(`${good ? 'ok' : 'FAILED'} ${name}: ${text}; ${warnings.join(' | ') || 'no warning'}`);
    await tab.close();
  }
} finally {
  for (const stop of servers.reverse()) await stop();
  rmSync(here, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
