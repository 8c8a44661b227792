// The introspected schema: graphql-schema-linter, relay-compiler, and no breaking change
// since any release.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { Kind, buildClientSchema, getIntrospectionQuery, parse, parseType, print, printSchema, visit } from 'graphql';
import { breakingChanges } from '../../breaking.mjs';
import { data } from '../../server.mjs';

const run = promisify(execFile);
const here = new URL('../..', import.meta.url).pathname;

async function serversSchema() {
  return buildClientSchema(await data(getIntrospectionQuery({ oneOf: true, inputValueDeprecation: true, specifiedByUrl: true })));
}

// The whole schema of each release, by its version.
const releases = async () => {
  const files = (await readdir(join(here, 'released'))).filter((name) => name.endsWith('.graphql')).sort();
  assert.ok(files.length > 0);
  return Promise.all(files.map(async (name) => [name.replace('.graphql', ''), await readFile(join(here, 'released', name), 'utf8')]));
};

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

// Changes since a release that the changelog lists, with the reason.
const listed = {
  '0.1.0': [
    "Type 'PaymentMethod' was removed", // the options of an order name what it can be paid with
    "Field 'searchOrders' was removed from object type 'Query'", // `orders` searches too
    // The plain name of a list is its connection, as `sales` and `orders` are.
    "Field 'Query.deadLetters' changed type from '[DeadLetter!]' to 'DeadLetterConnection'",
    "Type for argument 'after' on field 'Query.deadLetters' changed from 'ID' to 'String'",
    "Field 'Query.deadLetterActs' changed type from '[DeadLetterAct!]' to 'DeadLetterActConnection'",
    "Field 'Query.heldPayments' changed type from '[HeldPayment!]' to 'HeldPaymentConnection'",
    "Type for argument 'after' on field 'Query.heldPayments' changed from 'ID' to 'String'",
    "Field 'Query.interventions' changed type from '[Intervention!]' to 'InterventionConnection'",
    "Argument 'saleId: ID' was removed from field 'Query.interventions'",
    "Argument 'states: [InterventionState!]' was removed from field 'Query.interventions'",
    // A look-up of one object names its key, as `sale(by:)` does.
    "Argument 'id: ID!' was removed from field 'Query.order'",
    "Argument 'by: OrderLookup!' added to field 'Query.order'",
    // Had a better field beside it.
    "Field 'existingOrder' was removed from object type 'PurchaseLimitError'",
    "Field 'lapsedOrders' was removed from object type 'SaleStats'",
    "Field 'act' was removed from object type 'SaleLogEntry'",
    "Field 'details' was removed from object type 'SaleLogEntry'",
    "Field 'act' was removed from object type 'GoodsLogEntry'",
    "Field 'details' was removed from object type 'GoodsLogEntry'",
    "Field 'method' was removed from object type 'Payment'",
    "Input field 'method' was removed from input object type 'PayOrderInput'",
    "Field 'Sale.purchaseLimit' changed type from 'Int!' to 'Int'", // the limit over all items, which a sale need not have
  ],
};

test('no breaking change since any release, except those in the upgrade notes', async () => {
  const now = printSchema(await serversSchema());
  for (const [version, schema] of await releases()) {
    assert.deepEqual(await breakingChanges(schema, now), listed[version] ?? [], version);
  }
});

test('the stored schema of each release is complete', async () => {
  for (const [version, schema] of await releases()) {
    const types = parse(schema).definitions.filter((d) => d.name && !d.name.value.startsWith('__'));
    const mutations = types.find((d) => d.name.value === 'Mutation').fields.length;
    assert.ok(types.length > 150 && mutations >= 34, `${version}: ${types.length} definitions, ${mutations} mutations`);
  }
});

// Tests the check itself: each breaking edit of the released schema must be found.
test('the check finds each kind of breaking change', async () => {
  const [, before] = (await releases()).at(-1);
  const edited = (edit) => print(visit(parse(before), edit));
  const named = (node, name) => node.name.value === name;
  const drop = (type, field) => (node) => (named(node, type) ? { ...node, fields: node.fields.filter((f) => !named(f, field)) } : undefined);
  const change = (type, field, edit) => (node) =>
    named(node, type) ? { ...node, fields: node.fields.map((f) => (named(f, field) ? edit(f) : f)) } : undefined;
  const nonNull = (node) => ({ ...node, type: { kind: Kind.NON_NULL_TYPE, type: node.type } });
  const breaks = {
    'a field is gone': [{ ObjectTypeDefinition: drop('Sale', 'title') }, /Field 'title' was removed from object type 'Sale'/],
    'a root field is gone': [{ ObjectTypeDefinition: drop('Mutation', 'placeOrder') }, /Field 'placeOrder' was removed from object type 'Mutation'/],
    'a field has another type': [{ ObjectTypeDefinition: change('Sale', 'title', (f) => ({ ...f, type: parseType('Int!') })) }, /Field 'Sale\.title' changed type/],
    'a field may be null': [{ ObjectTypeDefinition: change('Sale', 'title', (f) => ({ ...f, type: parseType('String') })) }, /Field 'Sale\.title' changed type/],
    'an input field is gone': [{ InputObjectTypeDefinition: drop('PlaceOrderInput', 'quantity') }, /Input field 'quantity' was removed/],
    'an input field is needed': [
      { InputObjectTypeDefinition: (node) => (named(node, 'PlaceOrderInput') ? { ...node, fields: [...node.fields, { ...node.fields[0], name: { kind: Kind.NAME, value: 'more' } }] } : undefined) },
      /Input field 'more' of type '.*!' was added/,
    ],
    'an argument is needed': [
      { ObjectTypeDefinition: change('Query', 'sales', (f) => ({ ...f, arguments: f.arguments.map((a) => (named(a, 'first') ? { ...nonNull(a), defaultValue: undefined } : a)) })) },
      /Type for argument 'first' on field 'Query\.sales' changed/,
    ],
    'an argument is gone': [
      { ObjectTypeDefinition: change('Query', 'sales', (f) => ({ ...f, arguments: f.arguments.filter((a) => !named(a, 'first')) })) },
      /Argument 'first: Int' was removed from field 'Query\.sales'/,
    ],
    'an enum value is gone': [
      { EnumTypeDefinition: (node) => (named(node, 'Role') ? { ...node, values: node.values.slice(1) } : undefined) },
      /was removed from enum 'Role'/,
    ],
    'an interface is gone': [
      { ObjectTypeDefinition: (node) => (named(node, 'Sale') ? { ...node, interfaces: [] } : undefined) },
      /'Sale' object type no longer implements 'Node' interface/,
    ],
  };
  for (const [name, [edit, want]] of Object.entries(breaks)) {
    assert.match((await breakingChanges(before, edited(edit))).join('\n'), want, name);
  }
  const more = { ObjectTypeDefinition: (node) => (named(node, 'Sale') ? { ...node, fields: [...node.fields, { ...node.fields[0], name: { kind: Kind.NAME, value: 'more' } }] } : undefined) };
  assert.deepEqual(await breakingChanges(before, edited(more)), [], 'more fields break nobody');
});
