// The schema as the server tells it: lint by the rules of others, relay-compiler
// over it, and nothing broken since the last release.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { buildClientSchema, buildSchema, findBreakingChanges, getIntrospectionQuery, printSchema } from 'graphql';
import { data } from '../../server.mjs';

const run = promisify(execFile);
const here = new URL('../..', import.meta.url).pathname;

async function serversSchema() {
  return buildClientSchema(await data(getIntrospectionQuery({ oneOf: true, inputValueDeprecation: true, specifiedByUrl: true })));
}

test('graphql-schema-linter', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'lint-'));
  try {
    const file = join(dir, 'schema.graphql');
    await writeFile(file, printSchema(await serversSchema()));
    const linter = join(here, 'node_modules/.bin/graphql-schema-linter');
    const rules = [
      'arguments-have-descriptions', 'defined-types-are-used', 'deprecations-have-a-reason', 'descriptions-are-capitalized',
      'enum-values-all-caps', 'enum-values-have-descriptions', 'fields-are-camel-cased', 'fields-have-descriptions',
      'input-object-values-are-camel-cased', 'input-object-values-have-descriptions', 'relay-connection-arguments-spec',
      'relay-connection-types-spec', 'relay-page-info-spec', 'types-are-capitalized', 'types-have-descriptions',
    ]; // all but those on alphabetical order: fields stand in the order in which they are read
    const { stdout } = await run(linter, ['--format', 'json', '--rules', rules.join(','), file]).catch((error) => error);
    assert.deepEqual(JSON.parse(stdout).errors, []);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('relay-compiler compiles connections and refetchable fragments', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'relay-'));
  try {
    await mkdir(join(dir, 'src'));
    await writeFile(join(dir, 'schema.graphql'), printSchema(await serversSchema()));
    await writeFile(join(dir, 'src/Sales.js'), await readFile(join(here, 'relay/Sales.js')));
    await writeFile(join(dir, 'relay.config.json'), JSON.stringify({ src: './src', schema: './schema.graphql', language: 'javascript', eagerEsModules: true }));
    await run('git', ['init', '-q'], { cwd: dir }).catch(() => {}); // the compiler asks for the files of a repository
    const { stdout, stderr } = await run(process.execPath, [join(here, 'node_modules/relay-compiler/cli.js')], { cwd: dir });
    assert.match(stdout + stderr, /Done|Compilation completed/);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('nothing that the last release had is gone or changed', async () => {
  const released = buildSchema(await readFile(join(here, 'released.graphql'), 'utf8'));
  const now = buildSchema(printSchema(await serversSchema())); // so that both have the same built-in directives
  const broken = findBreakingChanges(released, now).map((change) => change.description);
  assert.deepEqual(broken, []);
});
