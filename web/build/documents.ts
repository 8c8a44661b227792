/**
 * Replaces the documents of src/documents/*.ts and client/src/documents/*.ts by what the browser needs: name
 * and sha256 of each operation. The same hashes with their texts make
 * documents.json, the server's list of trusted documents. Only the development
 * server sends texts, so that a document can be changed at will.
 *
 * Every document is validated against the server's schema in graph/schema; one
 * that does not fit fails the build.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import {
  buildSchema,
  Kind,
  parse,
  print,
  stripIgnoredCharacters,
  validate,
  visit,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Plugin } from 'vite';

/** One operation. */
export interface Operation {
  id: string;
  name: string;
  text: string;
}

/** The operations of a file by export name; null stands for a fragment. */
export interface Group {
  /** The path of the file. */
  file: string;
  name: string;
  exports: Map<string, Operation | null>;
}

const exported = /export const (\w+) = (?:graphql\(\s*|mutation\('(\w+)', )`([^`]*)`/g;

/** The text of a mutation, as its type in src/documents/mutation.ts. */
function mutationText(name: string, fields: string): string {
  const field = name[0]!.toLowerCase() + name.slice(1);
  return `mutation ${name}($input: ${name}Input!) { ${field}(input: $input) { ${fields} userErrors { ...FailureParts } } }`;
}

interface Definition {
  exportName: string;
  file: string;
  node: OperationDefinitionNode | FragmentDefinitionNode;
}

function readDefinitions(dir: string): Definition[] {
  const found: Definition[] = [];
  for (const file of readdirSync(dir).sort()) {
    if (!file.endsWith('.ts')) continue;
    const source = readFileSync(join(dir, file), 'utf8');
    for (const [, exportName, mutation, text] of source.matchAll(exported)) {
      for (const node of parse(mutation ? mutationText(mutation, text!) : text!, { noLocation: true }).definitions) {
        if (node.kind !== Kind.OPERATION_DEFINITION && node.kind !== Kind.FRAGMENT_DEFINITION) continue;
        found.push({ exportName: exportName!, file: join(dir, file), node });
      }
    }
  }
  return found;
}

/** Names of the fragments that a node spreads, in document order. */
function spreads(node: OperationDefinitionNode | FragmentDefinitionNode): string[] {
  const names: string[] = [];
  visit(node, { FragmentSpread: (spread) => void names.push(spread.name.value) });
  return names;
}

/** The operation with every fragment that it reaches. */
function assemble(operation: OperationDefinitionNode, fragments: Map<string, FragmentDefinitionNode>): DocumentNode {
  const reached = new Map<string, FragmentDefinitionNode>();
  const walk = (node: OperationDefinitionNode | FragmentDefinitionNode): void => {
    for (const name of spreads(node)) {
      const fragment = fragments.get(name);
      if (!fragment) throw new Error(`fragment ${name} is not defined`);
      if (reached.has(name)) continue;
      reached.set(name, fragment);
      walk(fragment);
    }
  };
  walk(operation);
  return { kind: Kind.DOCUMENT, definitions: [operation, ...reached.values()] };
}

/** Reads the documents of folders; throws where one does not fit the schema. */
export function readGroups(dirs: string[], schema: GraphQLSchema): Group[] {
  const definitions = dirs.flatMap(readDefinitions);
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const { node } of definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);

  const groups = new Map<string, Group>();
  for (const { exportName, file, node } of definitions) {
    const name = basename(file, '.ts');
    const group: Group = groups.get(file) ?? { file, name, exports: new Map() };
    groups.set(file, group);
    if (node.kind === Kind.FRAGMENT_DEFINITION) {
      group.exports.set(exportName, null);
      continue;
    }
    const document = assemble(node, fragments);
    const errors = validate(schema, document);
    if (errors.length) throw new Error(`${name}/${exportName}: ${errors.join('; ')}`);
    const text = stripIgnoredCharacters(print(document));
    group.exports.set(exportName, {
      id: createHash('sha256').update(text).digest('hex'),
      name: node.name?.value ?? exportName,
      text,
    });
  }
  return [...groups.values()];
}

/** The trusted documents as JSON, sorted by hash. */
export function manifest(groups: Group[]): string {
  const entries = groups
    .flatMap((group) => [...group.exports.values()])
    .filter((operation): operation is Operation => operation !== null)
    .map((operation) => [operation.id, operation.text] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(entries), null, 1) + '\n';
}

/** Reads the schema from the .graphqls files of a folder. */
export function loadSchema(dir: string): GraphQLSchema {
  const files = readdirSync(dir).filter((name) => name.endsWith('.graphqls')).sort();
  return buildSchema(files.map((name) => readFileSync(join(dir, name), 'utf8')).join('\n'));
}

/** The module of a group: what the browser needs of each operation. */
function moduleOf({ exports }: Group, texts: boolean): string {
  const lines = [...exports].map(([name, operation]) => {
    const sent = operation && { ...operation, text: texts ? operation.text : undefined };
    return `export const ${name} = ${JSON.stringify(sent)};`;
  });
  return lines.join('\n');
}

/** A Vite plugin for clients that send the texts of their documents. */
export function documentTexts(groups: Group[]): Plugin {
  return {
    name: 'document-texts',
    enforce: 'pre',
    transform(_code, file) {
      const group = groups.find((candidate) => candidate.file === resolve(file));
      return group ? { code: moduleOf(group, true), map: null } : null;
    },
  };
}

/** The Vite plugin. */
export function documents(root: string): Plugin {
  const dirs = [join(root, 'client/src/documents'), join(root, 'src/documents')];
  const read = (): Group[] => readGroups(dirs, loadSchema(join(root, '../graph/schema')));
  let groups: Group[] = [];
  let texts = false;
  return {
    name: 'documents',
    enforce: 'pre',
    config(_config, { command }) {
      texts = command === 'serve';
      groups = read();
    },
    transform(_code, file) {
      if (!dirs.some((dir) => file.startsWith(dir + '/'))) return null;
      if (texts) groups = read(); // the file may have changed
      const group = groups.find((candidate) => candidate.file === file);
      return group ? { code: moduleOf(group, texts), map: null } : null;
    },
    writeBundle({ dir: out }) {
      writeFileSync(join(out!, '../documents.json'), manifest(groups));
    },
  };
}
