// A purchase with urql: queries and mutations over HTTP, the order's status over a
// WebSocket.
import { Client, cacheExchange, fetchExchange, gql, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws'; // browsers have their own
import { buy, endpoint, socketEndpoint } from './documents.mjs';

const session = { token: undefined };
const authorization = () => (session.token ? { authorization: `Bearer ${session.token}` } : {});
const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, lazy: true, connectionParams: authorization });
const urql = new Client({
  url: endpoint,
  preferGetMethod: false,
  fetchOptions: () => ({ headers: authorization() }),
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

await buy(
  Object.assign(session, {
    execute: async (text, variables) => {
      const document = gql(text);
      const isQuery = document.definitions[0].operation === 'query';
      const { data, error } = await (isQuery ? urql.query(document, variables) : urql.mutation(document, variables)).toPromise();
      if (error) throw error;
      return data;
    },
    subscribe: (text, variables, next) =>
      new Promise((resolve, reject) => {
        const { unsubscribe } = urql.subscription(gql(text), variables).subscribe(({ data, error }) => {
          if (error) return reject(error);
          next(data);
          if (['SUCCEEDED', 'FAILED'].includes(data.orderTaskStatus.orderTask.status)) {
            resolve();
            queueMicrotask(() => unsubscribe());
          }
        });
      }),
  }),
);
await socket.dispose();
