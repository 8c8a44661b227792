// Builds dist/: the modules and their types, with each document as the text that is sent.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runnerImport } from 'vite';

const here = import.meta.dirname;
const dist = join(here, 'dist');

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [join(here, '../node_modules/typescript/bin/tsc'), '-p', here], { stdio: 'inherit' });

const { module } = await runnerImport(join(here, '../build/documents.ts'));
const source = join(here, 'src/documents');
for (const group of module.readGroups([source], module.loadSchema(join(here, '../../graph/schema')))) {
  const lines = [...group.exports].map(([name, operation]) => `export const ${name} = ${JSON.stringify(operation)};`);
  writeFileSync(join(dist, 'documents', `${group.name}.js`), lines.join('\n') + '\n');
}
for (const file of ['tada.js', 'tada.d.ts']) rmSync(join(dist, file));

// The types of documents need no library: TadaDocumentNode stands for what gql.tada makes of a document.
for (const file of readdirSync(dist, { recursive: true })) {
  const path = join(dist, file);
  if (!/\.(js|d\.ts)$/.test(file)) continue;
  const up = '../'.repeat(file.split('/').length - 1) || './';
  const text = readFileSync(path, 'utf8')
    .replaceAll('import("gql.tada").TadaDocumentNode<', `import("${up}operation.js").Operation<`)
    .replaceAll(/((?:from |import\()['"]\.[^'"]*)\.ts(?=['"])/g, '$1.js')
    .replaceAll("new URL('./worker.ts'", "new URL('./worker.js'");
  if (/gql\.tada|\.ts['"]/.test(text)) throw new Error(`${file} imports what is not packed`);
  writeFileSync(path, text);
}

// The component and what it loads later, with types beside it.
execFileSync(process.execPath, [join(here, '../node_modules/vite/bin/vite.js'), 'build', '--config', join(here, 'component/vite.config.ts'), '--outDir', dist, '--logLevel', 'warn'], { stdio: 'inherit' });
writeFileSync(
  join(dist, 'seckill-drop.d.ts'),
  `import type { Drop } from './drop.js';
import type { Session } from './session.js';
export { Drop } from './drop.js';
export { PasswordSession, tokenSession } from './session.js';
export declare class SeckillDrop extends HTMLElement {
  session: Session | null;
  readonly drop: Drop | null;
}
`,
);
