import tailwindcss from '@tailwindcss/vite';
import { defineConfig } from 'vitest/config';
import { documents } from './build/documents.ts';
import { preloads, version } from './build/version.ts';

const root = import.meta.dirname;
const server = process.env['SHOP_SERVER'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@seckill\/client\/(.*)$/, replacement: `${root}/client/src/$1.ts` }] },
  plugins: [documents(root), tailwindcss(), preloads(), version()],
  build: {
    outDir: 'dist',
    target: ['chrome123', 'safari17.5', 'firefox128'],
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: { app: `${root}/index.html` },
      output: {
        entryFileNames: 'assets/[name].js',
        chunkFileNames: ({ facadeModuleId }) => (facadeModuleId?.includes('/src/operator/') ? 'assets/admin-[name].js' : 'assets/[name].js'),
        assetFileNames: 'assets/app[extname]',
        codeSplitting: {
          groups: [
            { name: 'core', test: /node_modules\/(@?preact|wouter|regexparam)|client\/src\/((backoff|client|clock|events|fault|http|live|operation|order|tickets|pending|session|storage|task)\.ts|documents\/(order|purchase|sale|server))|src\/(api|i18n\/(lang|text|en)|ui|documents\/account|operator\/pages|purchase\/(button|refusal))/ },
            { name: 'admin-fields', test: /src\/operator\/(file|when)/, minShareCount: 2, includeDependenciesRecursively: false },
            { name: 'admin-sale-forms', test: /src\/operator\/(preview|price|rules-field|sale-fields)/, minShareCount: 2, includeDependenciesRecursively: false },
            { name: 'admin', test: /src\/(operator|documents\/(operator|interventions|inbox|templates))/, minShareCount: 2, includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
  worker: { format: 'es', rollupOptions: { output: { entryFileNames: 'assets/[name].js' } } },
  server: { proxy: { '/graphql': { target: server, ws: true } } },
  test: { environment: 'happy-dom', include: ['test/**/*.test.{ts,tsx}'], setupFiles: 'test/setup.ts', testTimeout: 300_000, hookTimeout: 300_000 },
});
