/**
 * Turns the documents of src/documents/*.ts into what the browser needs and
 * nothing more: name and sha256 of each operation. The same hashes with their
 * texts make documents.json, the server's list of trusted documents. Only the
 * development server sends texts, so that a document can be changed at will.
 *
 * A file of documents is a feature. It is served when the server's schema knows
 * every field that the file asks for; `@_optional` on a field lets it be left
 * out. A feature that is not served is left out of the build: its constant
 * __HAS_<FILE>__ is false, so no button leads nowhere.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  buildSchema,
  Kind,
  parse,
  print,
  stripIgnoredCharacters,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
  type ASTVisitor,
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

/** A file of documents: its operations by export name, and why it is not served. */
export interface Group {
  name: string;
  exports: Map<string, Operation | null>;
  missing: string[];
}

const exported = /export const (\w+) = graphql\(\s*`([^`]*)`/g;

interface Definition {
  exportName: string;
  group: string;
  node: OperationDefinitionNode | FragmentDefinitionNode;
}

function readDefinitions(dir: string): Definition[] {
  const found: Definition[] = [];
  for (const file of readdirSync(dir).sort()) {
    if (!file.endsWith('.ts')) continue;
    const source = readFileSync(join(dir, file), 'utf8');
    for (const [, exportName, text] of source.matchAll(exported)) {
      for (const node of parse(text!, { noLocation: true }).definitions) {
        if (node.kind !== Kind.OPERATION_DEFINITION && node.kind !== Kind.FRAGMENT_DEFINITION) continue;
        found.push({ exportName: exportName!, group: basename(file, '.ts'), node });
      }
    }
  }
  return found;
}

/** Names of the fragments that a node spreads, in the order they appear. */
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

/** Drops `@_optional` selections that the schema does not know, and the mark itself. */
function prune(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  const marked = (node: { directives?: readonly { name: { value: string } }[] }): boolean =>
    node.directives?.some((directive) => directive.name.value === '_optional') ?? false;
  const visitor: ASTVisitor = {
    Field: (node) => (marked(node) && !types.getFieldDef() ? null : undefined),
    InlineFragment: (node) =>
      marked(node) && !schema.getType(node.typeCondition?.name.value ?? '') ? null : undefined,
    Directive: (node) => (node.name.value === '_optional' ? null : undefined),
  };
  return visit(document, visitWithTypeInfo(types, visitor));
}

function keepReached(document: DocumentNode): DocumentNode {
  const fragments = new Map<string, FragmentDefinitionNode>();
  let operation: OperationDefinitionNode | undefined;
  for (const node of document.definitions) {
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
    if (node.kind === Kind.OPERATION_DEFINITION) operation = node;
  }
  return assemble(operation!, fragments);
}

/**
 * Reads all groups. `contract` is what the documents are typed against and must
 * hold for all of them; `served` is what the server answers today.
 */
export function readGroups(dir: string, contract: GraphQLSchema, served: GraphQLSchema): Group[] {
  const definitions = readDefinitions(dir);
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const { node } of definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);

  const groups = new Map<string, Group>();
  for (const { exportName, group: name, node } of definitions) {
    const group: Group = groups.get(name) ?? { name, exports: new Map(), missing: [] };
    groups.set(name, group);
    if (node.kind === Kind.FRAGMENT_DEFINITION) {
      group.exports.set(exportName, null);
      continue;
    }
    const whole = assemble(node, fragments);
    const faults = validate(contract, keepReached(prune(whole, contract)));
    if (faults.length) throw new Error(`${name}/${exportName}: ${faults.join('; ')}`);
    const document = keepReached(prune(whole, served));
    for (const fault of validate(served, document)) group.missing.push(`${exportName}: ${fault.message}`);
    const text = stripIgnoredCharacters(print(document));
    group.exports.set(exportName, {
      id: createHash('sha256').update(text).digest('hex'),
      name: node.name?.value ?? exportName,
      text,
    });
  }
  return [...groups.values()];
}

/** The trusted documents of the served groups, sorted by hash. */
export function manifest(groups: Group[]): string {
  const entries = groups
    .filter((group) => group.missing.length === 0)
    .flatMap((group) => [...group.exports.values()])
    .filter((operation): operation is Operation => operation !== null)
    .map((operation) => [operation.id, operation.text] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(entries), null, 1) + '\n';
}

/** Reads a schema from the files that make it up. */
export function loadSchema(...files: string[]): GraphQLSchema {
  return buildSchema(files.map((file) => readFileSync(file, 'utf8')).join('\n'));
}

/** The Vite plugin. */
export function documents(root: string, served = join(root, 'schema/served.graphqls')): Plugin {
  const dir = join(root, 'src/documents');
  let groups: Group[] = [];
  const read = (): void => {
    const contract = loadSchema(join(root, 'schema/served.graphqls'), join(root, 'schema/planned.graphqls'));
    groups = readGroups(dir, contract, loadSchema(served));
  };
  let texts = false;
  return {
    name: 'documents',
    enforce: 'pre',
    config(_config, { command }) {
      texts = command === 'serve';
      read();
      return {
        define: Object.fromEntries(
          groups.map((group) => [`__HAS_${group.name.toUpperCase()}__`, String(group.missing.length === 0)]),
        ),
      };
    },
    transform(_code, file) {
      if (!file.startsWith(dir + '/')) return null;
      if (texts) read(); // a document may have changed
      const group = groups.find((candidate) => candidate.name === basename(file, '.ts'));
      if (!group) return null;
      const lines = [...group.exports].map(([name, operation]) => {
        const sent = operation && !group.missing.length ? { ...operation, text: texts ? operation.text : undefined } : null;
        return `export const ${name} = ${JSON.stringify(sent)};`;
      });
      return { code: lines.join('\n'), map: null };
    },
    writeBundle({ dir: out }) {
      writeFileSync(join(out!, '../documents.json'), manifest(groups));
      for (const group of groups) {
        if (group.missing.length) this.info(`${group.name} is left out: ${group.missing[0]}`);
      }
    },
  };
}
