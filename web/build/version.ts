/**
 * Stable file names whose URLs can be cached forever: every reference
 * from one built file to another carries ?v=<version>, where the version is the
 * hash of the whole build. All references to a file are equal, so a module is
 * never loaded twice under two URLs.
 */
import { createHash } from 'node:crypto';
import type { Plugin } from 'vite';

/** The Vite plugin. */
export function version(): Plugin {
  return {
    name: 'version',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const files = Object.values(bundle).sort((a, b) => (a.fileName < b.fileName ? -1 : 1));
        const text = (file: (typeof files)[number]): string =>
          file.type === 'chunk' ? file.code : Buffer.from(file.source).toString('utf8');
        const hash = createHash('sha256');
        for (const file of files) hash.update(file.fileName).update('\0').update(text(file)).update('\0');
        const v = hash.digest('hex').slice(0, 12);
        const names = files.map((file) => file.fileName.split('/').pop()!.replace('.', '\\.'));
        const reference = new RegExp(`((?:\\./|/?assets/)(?:${names.join('|')}))(?=["'\`)])`, 'g');
        for (const file of files) {
          if (!/\.(js|html|css)$/.test(file.fileName)) continue;
          const stamped = text(file).replace(reference, `$1?v=${v}`);
          if (file.type === 'chunk') file.code = stamped;
          else file.source = stamped;
        }
        this.emitFile({ type: 'asset', fileName: 'version.txt', source: `${v}\n` });
      },
    },
  };
}

/** Preloads the modules that a dynamic import needs, so that they are fetched together: as Vite does it, but with references that `version` can stamp. */
export function preloads(): Plugin {
  const helper = `export const __vitePreload = (load, needed = []) => {
    for (const file of needed) document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href: '/' + file }));
    return load();
  };`;
  return { name: 'preloads', enforce: 'pre', load: (id) => (id.endsWith('vite/preload-helper.js') ? helper : null) };
}
