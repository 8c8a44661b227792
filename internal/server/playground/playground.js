// Joins GraphiQL to /graphql of the host that served this page: queries and
// mutations by POST, subscriptions over graphql-transport-ws. Headers set in the
// editor travel with both: for a socket they become connection_init's payload.
(async () => {
  const { React, ReactDOM, GraphiQL } = window;
  const socket = new URL('/graphql', location.href);
  socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const send = GraphiQL.createFetcher({ url: '/graphql', subscriptionUrl: socket.href });
  // GraphiQL reads the document a tenth of a second after the last key. Who executes
  // sooner would send a subscription by POST, or the name of an operation that is
  // gone: the document is read again as it is sent.
  const fetcher = (params, options) => {
    let documentAST;
    try {
      documentAST = GraphiQL.GraphQL.parse(params.query);
    } catch {
      return send(params, options); // the server words the error
    }
    const names = documentAST.definitions.filter((d) => d.kind === 'OperationDefinition').map((d) => d.name?.value);
    const operationName = names.includes(params.operationName) ? params.operationName : names[0];
    return send({ ...params, operationName }, { ...options, documentAST });
  };
  const text = await (await fetch('/playground/tabs.json')).text();
  const tabs = JSON.parse(text);
  // GraphiQL opens with what it held last, which may be another server's: a demo has
  // new ids at each start.
  if (localStorage.getItem('playground-tabs') !== text) {
    for (const name of ['tabState', 'query', 'variables', 'headers']) localStorage.removeItem(`graphiql:${name}`);
    localStorage.setItem('playground-tabs', text);
  }
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
