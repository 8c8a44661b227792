// graphql-http's audit of GraphQL over HTTP.
import assert from 'node:assert/strict';
import test from 'node:test';
import { auditServer } from 'graphql-http';
import { graphqlURL, production } from '../../server.mjs';

// audits that query __type; production refuses introspection
const introspect = new Set(['2EA1', '28B9', 'D6D5', '6A70', 'BF61']);

test('graphql-http audit', async () => {
  const results = await auditServer({ url: graphqlURL });
  const failed = results.filter((r) => r.status !== 'ok').map((r) => `${r.id} ${r.name}: ${r.reason}`);
  assert.equal(results.length, 61);
  if (production) {
    assert.deepEqual(failed.filter((line) => !introspect.has(line.slice(0, 4))), []);
    return;
  }
  assert.deepEqual(failed, []);
});
