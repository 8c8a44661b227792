// Joins GraphiQL to /graphql of the host that served this page: queries and
// mutations by POST, subscriptions over graphql-transport-ws. Headers set in the
// editor travel with both: for a socket they become connection_init's payload.
(async () => {
  const { React, ReactDOM, GraphiQL } = window;
  const socket = new URL('/graphql', location.href);
  socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const fetcher = GraphiQL.createFetcher({ url: '/graphql', subscriptionUrl: socket.href });
  const tabs = await (await fetch('/playground/tabs.json')).json();
  const editor = React.createElement(GraphiQL, {
    fetcher,
    defaultTabs: tabs.length > 0 ? tabs : undefined,
    defaultEditorToolsVisibility: true,
    inputValueDeprecation: true,
    isHeadersEditorEnabled: true,
    shouldPersistHeaders: false, // a token must not stay in the browser's storage
  });
  ReactDOM.createRoot(document.getElementById('graphiql')).render(editor);
})();
