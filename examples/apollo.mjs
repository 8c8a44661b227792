// A purchase with Apollo Client: queries and mutations over HTTP, the order's status over
// a WebSocket.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws'; // browsers have their own
import { buy, endpoint, socketEndpoint } from './documents.mjs';

const session = { token: undefined };
const authorization = () => (session.token ? { authorization: `Bearer ${session.token}` } : {});
const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, lazy: true, connectionParams: authorization });
const apollo = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    ApolloLink.from([
      new SetContextLink(({ headers }) => ({ headers: { ...headers, ...authorization() } })),
      new HttpLink({ uri: endpoint }),
    ]),
  ),
});

await buy(
  Object.assign(session, {
    execute: async (text, variables) => {
      const document = gql(text);
      const isQuery = document.definitions[0].operation === 'query';
      const { data } = await (isQuery ? apollo.query({ query: document, variables }) : apollo.mutate({ mutation: document, variables }));
      return data;
    },
    subscribe: (text, variables, next) =>
      new Promise((resolve, reject) => {
        apollo.subscribe({ query: gql(text), variables }).subscribe({
          next: ({ data, error }) => (error ? reject(error) : next(data)),
          error: reject,
          complete: resolve,
        });
      }),
  }),
);
apollo.stop();
await socket.dispose();
