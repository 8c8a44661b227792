/** Builds seckill-drop.js: one file without imports, with the texts of its documents. */
import { defineConfig } from 'vite';
import { readGroups, loadSchema, documentTexts } from '../../build/documents.ts';

const client = `${import.meta.dirname}/..`;

export default defineConfig({
  root: client,
  publicDir: false,
  plugins: [
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
      output: { entryFileNames: 'seckill-drop.js', codeSplitting: false },
    },
  },
  worker: { format: 'es' },
});
