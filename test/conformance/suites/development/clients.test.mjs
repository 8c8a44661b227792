// urql and Apollo Client, as their guides say, with nothing but URL and token.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql as apollo } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { Client, cacheExchange, fetchExchange, gql as urql, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { anySale, graphqlURL, signIn, socketURL } from '../../server.mjs';

const who = '{ viewer { id displayName } }';
const watch = 'subscription($id: ID!) { saleStatus(saleId: $id) { kind sale { id title } } }';
const sign = 'mutation($input: CreateCaptchaInput!) { createCaptcha(input: $input) { challenge { id } userErrors { code } } }';
const captcha = { input: { purpose: 'LOGIN', kind: 'PROOF_OF_WORK' } };

test('urql', async () => {
  const token = await signIn('alice@demo.example');
  const socket = createClient({ url: socketURL, webSocketImpl: WebSocket, connectionParams: { authorization: `Bearer ${token}` } });
  const client = new Client({
    url: graphqlURL,
    fetchOptions: { headers: { authorization: `Bearer ${token}` } },
    exchanges: [
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: (request) => ({
          subscribe: (sink) => ({ unsubscribe: socket.subscribe({ ...request, query: request.query ?? '' }, sink) }),
        }),
      }),
    ],
  });
  const { data, error } = await client.query(urql(who), {}).toPromise();
  assert.equal(error, undefined);
  assert.ok(data.viewer.id);
  const mutation = await client.mutation(urql(sign), captcha).toPromise();
  assert.equal(mutation.error, undefined);
  assert.ok(mutation.data.createCaptcha.challenge.id);
  const id = await anySale();
  const first = await new Promise((resolve) => {
    const { unsubscribe } = client.subscription(urql(watch), { id }).subscribe((result) => {
      resolve(result);
      setTimeout(() => unsubscribe());
    });
  });
  assert.equal(first.error, undefined);
  assert.equal(first.data.saleStatus.kind, 'SNAPSHOT');
  await socket.dispose();
});

test('Apollo Client', async () => {
  const token = await signIn('alice@demo.example');
  const socket = createClient({ url: socketURL, webSocketImpl: WebSocket, connectionParams: { authorization: `Bearer ${token}` } });
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(socket),
      new HttpLink({ uri: graphqlURL, headers: { authorization: `Bearer ${token}` } }),
    ),
  });
  const { data } = await client.query({ query: apollo(who) });
  assert.ok(data.viewer.id);
  const mutation = await client.mutate({ mutation: apollo(sign), variables: captcha });
  assert.ok(mutation.data.createCaptcha.challenge.id);
  await assert.rejects(client.query({ query: apollo('{ nonsense }') }), /nonsense/);
  const id = await anySale();
  const first = await new Promise((resolve, reject) => {
    const subscription = client.subscribe({ query: apollo(watch), variables: { id } }).subscribe({
      next: (result) => {
        resolve(result);
        setTimeout(() => subscription.unsubscribe());
      },
      error: reject,
    });
  });
  assert.equal(first.data.saleStatus.kind, 'SNAPSHOT');
  client.stop();
  await socket.dispose();
});
