// A purchase with fetch and graphql-ws alone: queries and mutations over HTTP, the order's
// status over a WebSocket that connects again after a loss.
import { createClient } from 'graphql-ws';
import WebSocket from 'ws'; // browsers have their own
import { buy, endpoint, socketEndpoint } from './documents.mjs';

const session = { token: undefined };
const authorization = () => (session.token ? { authorization: `Bearer ${session.token}` } : {});
const socket = createClient({
  url: socketEndpoint,
  webSocketImpl: WebSocket,
  connectionParams: authorization,
  shouldRetry: () => true, // graphql-ws itself does not retry after codes that mean a fault of the client
});

await buy(
  Object.assign(session, {
    execute: async (query, variables) => {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorization() },
        body: JSON.stringify({ query, variables }),
      });
      const { data, errors } = await response.json();
      if (errors) throw new Error(`${errors[0].extensions?.code}: ${errors[0].message}`);
      return data;
    },
    subscribe: async (query, variables, next) => {
      for await (const { data, errors } of socket.iterate({ query, variables })) {
        if (errors) throw new Error(errors[0].message);
        next(data);
      }
    },
  }),
);
await socket.dispose();
