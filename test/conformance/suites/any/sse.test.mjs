// graphql-sse's client in distinct connections mode.
import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from 'graphql-sse';
import { graphqlURL } from '../../server.mjs';

const collect = (client, request) =>
  new Promise((resolve) => {
    const results = [];
    client.subscribe(request, {
      next: (result) => results.push(result),
      error: (error) => resolve({ results, error }),
      complete: () => resolve({ results }),
    });
  });

test('a query yields one result and completes', async () => {
  const client = createClient({ url: graphqlURL });
  const { results, error } = await collect(client, { query: '{ __typename }' });
  assert.equal(error, undefined);
  assert.deepEqual(results.map((r) => r.data), [{ __typename: 'Query' }]);
  client.dispose();
});

test('an invalid document yields its errors and completes', async () => {
  const client = createClient({ url: graphqlURL });
  const { results, error } = await collect(client, { query: 'subscription { nonsense }' });
  assert.equal(error, undefined);
  assert.equal(results.length, 1);
  assert.ok(results[0].errors[0].extensions.code);
  client.dispose();
});
