import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BreakingChangeType, buildSchema, findBreakingChanges, parse, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import { loadSchema, manifest, readGroups } from '../build/documents';

const root = join(import.meta.dirname, '..');
const contract = loadSchema(join(root, 'schema/served.graphqls'), join(root, 'schema/planned.graphqls'));
const served = loadSchema(join(root, 'schema/served.graphqls'));
const groups = readGroups(join(root, 'src/documents'), contract, served);

/** The schema of the server in this tree. */
function current() {
  const dir = join(root, '../graph/schema');
  const files = readdirSync(dir).filter((name) => name.endsWith('.graphqls')).sort();
  return buildSchema(files.map((name) => readFileSync(join(dir, name), 'utf8')).join('\n'));
}

describe('the trusted documents', () => {
  test('are those of the build', () => {
    expect(readFileSync(join(root, 'documents.json'), 'utf8')).toBe(manifest(groups));
  });
  test('ask the server for nothing that it does not serve', () => {
    const schema = current();
    for (const text of Object.values(JSON.parse(manifest(groups)) as Record<string, string>)) {
      expect(validate(schema, parse(text)).map(({ message }) => message), text.slice(0, 40)).toEqual([]);
    }
  });
  test('have the types that the server gives', () => {
    const changed = [BreakingChangeType.FIELD_CHANGED_KIND, BreakingChangeType.ARG_CHANGED_KIND, BreakingChangeType.TYPE_CHANGED_KIND];
    const breaks = findBreakingChanges(contract, current()).filter(({ type }) => changed.includes(type));
    expect(breaks.map(({ description }) => description)).toEqual([]);
  });
});

describe('a group of documents', () => {
  function build(document: string, schema: string) {
    const dir = mkdtempSync(join(tmpdir(), 'documents-'));
    writeFileSync(join(dir, 'thing.ts'), `export const It = graphql(\`${document}\`);`);
    const whole = buildSchema('type Query { a: Int b: Int }');
    return readGroups(dir, whole, buildSchema(schema))[0]!;
  }
  test('is left out when a field is not served', () => {
    expect(build('query It { a b }', 'type Query { a: Int }').missing).toHaveLength(1);
  });
  test('does without an optional field that is not served', () => {
    const group = build('query It { a b @_optional }', 'type Query { a: Int }');
    expect(group.missing).toEqual([]);
    expect(group.exports.get('It')!.text).toBe('query It{a}');
  });
  test('asks for an optional field that is served', () => {
    expect(build('query It { a b @_optional }', 'type Query { a: Int b: Int }').exports.get('It')!.text).toBe('query It{a b}');
  });
  test('must hold against the contract', () => {
    expect(() => build('query It { c }', 'type Query { c: Int }')).toThrow(/Cannot query field "c"/);
  });
});
