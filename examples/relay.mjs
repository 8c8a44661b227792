// A purchase with Relay: the operations of relay/Buy.js as relay-compiler compiled them,
// over HTTP, and the order's status over a WebSocket.
import { createClient } from 'graphql-ws';
import relay from 'relay-runtime';
import WebSocket from 'ws'; // browsers have their own
import { buy, endpoint, socketEndpoint } from './documents.mjs';

const { Environment, Network, Observable, RecordSource, Store, commitMutation, fetchQuery, requestSubscription } = relay;
const session = { token: undefined };
const authorization = () => (session.token ? { authorization: `Bearer ${session.token}` } : {});
const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, lazy: true, connectionParams: authorization });

async function send({ text: query }, variables) {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization() },
    body: JSON.stringify({ query, variables }),
  });
  return response.json();
}

const environment = new Environment({
  store: new Store(new RecordSource()),
  network: Network.create(send, ({ text: query }, variables) =>
    Observable.create((sink) => socket.subscribe({ query, variables }, sink)),
  ),
});

/** The compiled operation of a document of documents.mjs. */
async function compiled(text) {
  const [, kind, name] = /^(query|mutation|subscription) (\w+)/.exec(text);
  const artifact = `Buy${name}${kind[0].toUpperCase()}${kind.slice(1)}`;
  return { kind, operation: (await import(`./relay/__generated__/${artifact}.graphql.js`)).default };
}

await buy(
  Object.assign(session, {
    execute: async (text, variables = {}) => {
      const { kind, operation } = await compiled(text);
      if (kind === 'query') return fetchQuery(environment, operation, variables).toPromise();
      return new Promise((resolve, reject) => {
        commitMutation(environment, { mutation: operation, variables, onCompleted: resolve, onError: reject });
      });
    },
    subscribe: async (text, variables, next) => {
      const { operation } = await compiled(text);
      await new Promise((resolve, reject) => {
        requestSubscription(environment, { subscription: operation, variables, onNext: next, onCompleted: resolve, onError: reject });
      });
    },
  }),
);
await socket.dispose();
