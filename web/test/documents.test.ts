import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSchema, getNamedType, isObjectType, parse } from 'graphql';
import { expect, test } from 'vitest';
import { loadSchema, manifest, readGroups, type Group } from '../build/documents';

const root = join(import.meta.dirname, '..');

function build(document: string, schema: string): Group {
  const dir = mkdtempSync(join(tmpdir(), 'documents-'));
  writeFileSync(join(dir, 'thing.ts'), `export const It = graphql(\`${document}\`);`);
  return readGroups([dir], buildSchema(schema))[0]!;
}

test('documents.json holds the documents of the source, valid against the schema of the server', () => {
  const groups = readGroups([join(root, 'client/src/documents'), join(root, 'src/documents')], loadSchema(join(root, '../graph/schema')));
  expect(readFileSync(join(root, 'documents.json'), 'utf8')).toBe(manifest(groups));
});

test('a document is sent without what the server ignores', () => {
  expect(build('query It { a b }', 'type Query { a: Int b: Int }').exports.get('It')!.text).toBe('query It{a b}');
});

test('a document that asks for an unknown field fails the build', () => {
  expect(() => build('query It { a b }', 'type Query { a: Int }')).toThrow(/thing\/It: .*Cannot query field "b"/);
});

test('a change that may need a second person asks whether it does', () => {
  const schema = loadSchema(join(root, '../graph/schema'));
  const mutations = schema.getMutationType()!.getFields();
  const operations = readGroups([join(root, 'client/src/documents'), join(root, 'src/documents')], schema).flatMap((group) => [...group.exports.values()]);
  const silent = operations.filter((operation) => {
    const definition = operation && parse(operation.text).definitions.find((each) => each.kind === 'OperationDefinition');
    if (!operation || definition?.kind !== 'OperationDefinition' || definition.operation !== 'mutation') return false;
    return definition.selectionSet.selections.some((field) => {
      const payload = field.kind === 'Field' ? getNamedType(mutations[field.name.value]!.type) : null;
      return isObjectType(payload) && 'intervention' in payload.getFields() && !/\bintervention\{/.test(operation.text);
    });
  });
  expect(silent.map((operation) => operation!.name)).toEqual([]);
});
