/** Builds seckill-drop.js, with the texts of its documents, and beside it what it loads when it is needed. */
import { defineConfig } from 'vite';
import { readGroups, loadSchema, documentTexts } from '../../build/documents.ts';

const client = `${import.meta.dirname}/..`;

export default defineConfig({
  root: client,
  publicDir: false,
  plugins: [
    { name: 'plain-imports', enforce: 'pre', load: (id) => (id.endsWith('vite/preload-helper.js') ? 'export const __vitePreload = (load) => load();' : null) },
    documentTexts(readGroups([`${client}/src/documents`], loadSchema(`${client}/../../graph/schema`))),
    { name: 'inline-worker', enforce: 'pre', resolveId: (id) => (id.endsWith('./spawn.ts') ? `${client}/component/spawn.ts` : null) },
  ],
  build: {
    target: ['chrome123', 'safari17.5', 'firefox128'],
    emptyOutDir: false,
    reportCompressedSize: false,
    modulePreload: false,
    rollupOptions: {
      input: `${client}/component/seckill-drop.ts`,
      preserveEntrySignatures: 'exports-only',
      checks: { ineffectiveDynamicImport: false }, // the socket is in the first file
      output: { entryFileNames: 'seckill-drop.js', chunkFileNames: 'seckill-drop-[name].js' },
    },
  },
  worker: { format: 'es' },
});
