// What production answers by default.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { graphqlURL, post, url } from '../../server.mjs';

const marker = 'm4rk3r-in-the-input';

test('documents of any client run, without showing the schema or quoting what was sent', async () => {
  const { body: answered } = await post('{ serverInfo { version } }');
  assert.ok(answered.data.serverInfo.version);
  for (const [query, code] of [
    ['{ __schema { types { name } } }', 'FORBIDDEN'],
    ['{{{{ ' + marker, 'GRAPHQL_PARSE_FAILED'],
    [`{ ${marker.replaceAll('-', '_')} }`, 'GRAPHQL_VALIDATION_FAILED'],
  ]) {
    const { body } = await post(query);
    assert.equal(body.errors[0].extensions.code, code, query);
    assert.ok(!JSON.stringify(body).includes('m4rk3r'), 'the document is quoted');
  }
});

test('documents of the shop run by hash', async () => {
  const documents = JSON.parse(await readFile(new URL('../../../../web/documents.json', import.meta.url)));
  assert.ok(Object.keys(documents).length > 0);
  for (const [hash, document] of Object.entries(documents)) {
    if (!/^query \w+(\(\$\w+:\w+[^!]*\))?\{/.test(document)) continue; // it needs variables, or writes
    const response = await fetch(graphqlURL, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ extensions: { persistedQuery: { version: 1, sha256Hash: hash } } }),
    });
    const body = await response.json();
    assert.ok(body.data !== undefined, `${document.slice(0, 60)}: ${JSON.stringify(body)}`);
  }
});

test('a query by GET, as of urql, is answered with what to set', async () => {
  const response = await fetch(`${graphqlURL}?query=${encodeURIComponent('{ serverInfo { version } }')}`, {
    headers: { accept: 'application/graphql-response+json, application/json' },
  });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get('allow'), 'POST');
  assert.match((await response.json()).errors[0].message, /by POST.*preferGetMethod: false/);
});

test('playground, forms and foreign pages are shut out', async () => {
  assert.equal((await fetch(`${url}/playground`)).status, 404);
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain']) {
    const response = await fetch(graphqlURL, { method: 'POST', headers: { 'content-type': type }, body: 'query={__typename}' });
    assert.equal(response.status, 415, type);
  }
  const foreign = await fetch(graphqlURL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' },
    body: '{"query":"{__typename}"}',
  });
  assert.equal(foreign.status, 403);
  for (const path of ['/metrics', '/readyz', '/debug/pprof/']) assert.equal((await fetch(url + path)).status, 404, path);
});
