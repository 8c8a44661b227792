// Joins GraphiQL to /graphql of the host that served this page: queries and
// mutations by POST, subscriptions over graphql-transport-ws. Headers set in the
// editor travel with both: for a socket they become connection_init's payload. The
// session's token is added unless the tab has an Authorization header of its own.
(async () => {
  const { React, ReactDOM, GraphiQL, playgroundSession: session } = window;
  const PICTURES = 10; // shown of one answer
  const LOGGED = 100; // events that the log of a subscription holds
  const socket = new URL('/graphql', location.href);
  socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const send = GraphiQL.createFetcher({ url: '/graphql', subscriptionUrl: socket.href, enableIncrementalDelivery: false });

  const signed = async (options) => {
    const headers = { ...options?.headers };
    if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) return options;
    const token = await session.bearer();
    return token ? { ...options, headers: { ...headers, Authorization: `Bearer ${token}` } } : options;
  };

  // Called with each executed document's answer; of a subscription, with the last event once it ended.
  let answered = () => {};

  // Shows the events of a subscription as a list, the newest first.
  const log = (events) => {
    const list = [];
    const shown = (step) => {
      if (step.done) {
        answered(list[0]);
        return step;
      }
      list.unshift({ at: new Date().toISOString(), ...step.value });
      list.length = Math.min(list.length, LOGGED);
      return { done: false, value: { events: [...list] } };
    };
    const from = events[Symbol.asyncIterator]();
    return {
      [Symbol.asyncIterator]() { return this; },
      next: () => from.next().then(shown),
      return: () => from.return?.() ?? Promise.resolve({ done: true, value: undefined }),
      throw: (thrown) => from.throw?.(thrown) ?? Promise.reject(thrown),
    };
  };

  // Shows the pictures of an answer, such as a captcha, which the answer has as text.
  const pictures = document.getElementById('pictures');
  const illustrate = (data) => {
    const found = [];
    const visit = (value) => {
      if (typeof value === 'string' && value.startsWith('data:image/')) found.push(value);
      else if (value && typeof value === 'object') Object.values(value).forEach(visit);
    };
    visit(data);
    pictures.replaceChildren(
      ...found.slice(0, PICTURES).map((address, n) => Object.assign(new Image(), { src: address, alt: `Picture ${n + 1} of the answer` })),
    );
    pictures.hidden = found.length === 0;
  };

  // GraphiQL reads the document a tenth of a second after the last key. Who executes
  // sooner would send a subscription by POST, or the name of an operation that is
  // gone: the document is read again as it is sent.
  const fetcher = async (params, given) => {
    const options = await signed(given);
    let documentAST;
    try {
      documentAST = GraphiQL.GraphQL.parse(params.query);
    } catch {
      return send(params, options); // the server words the error
    }
    const operations = documentAST.definitions.filter((d) => d.kind === 'OperationDefinition');
    const names = operations.map((d) => d.name?.value);
    const operationName = names.includes(params.operationName) ? params.operationName : names[0];
    const chosen = operations.find((d) => d.name?.value === operationName);
    const answer = await send({ ...params, operationName }, { ...options, documentAST });
    if (chosen?.operation === 'subscription' && answer?.[Symbol.asyncIterator]) return log(answer);
    session.adopt(answer?.data);
    illustrate(answer?.data);
    answered(answer);
    return answer;
  };

  const bar = document.getElementById('session');
  const say = (text) => (bar.querySelector('output').value = text);
  session.watch(({ who, own }) => {
    bar.dataset.state = own || who ? 'in' : 'out';
    say(own ? 'Signed in by a document' : who ? `${who.displayName} (${who.account}), ${who.role.toLowerCase()}` : '');
  });
  const act = (work) => async (event) => {
    event.preventDefault();
    try {
      await work(event.currentTarget);
    } catch (thrown) {
      say(thrown.message);
    }
  };
  bar.querySelector('form').addEventListener('submit', act(async (form) => {
    await session.signIn(form.account.value, form.password.value);
    form.password.value = '';
  }));
  bar.querySelector('#sign-out').addEventListener('click', act(() => session.signOut()));

  const [text] = await Promise.all([
    fetch('/playground/tabs.json').then((answer) => answer.text()),
    session.restore().catch((thrown) => say(thrown.message)),
  ]);
  const tabs = JSON.parse(text);
  const editor = () => document.querySelector('.graphiql-query-editor .CodeMirror').CodeMirror;
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  const active = () => document.querySelector('.graphiql-tab-active');

  // Opens an example: in place of nothing or of an example that was not changed, else in
  // a tab of its own.
  const show = async ({ query }) => {
    const present = editor().getValue().trim();
    if (present && !tabs.some((example) => example.query.trim() === present)) {
      const former = active();
      document.querySelector('.graphiql-tab-add').click();
      for (let tries = 0; tries < 60 && active() === former; tries++) await frame();
      await frame(); // the editor has the document of the new tab
    }
    editor().setValue(query);
    editor().focus();
    active()?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  const examples = bar.querySelector('select');
  examples.hidden = tabs.length === 0;
  for (const [place, { title }] of tabs.entries()) examples.append(new Option(title || `Example ${place + 1}`, String(place)));
  examples.addEventListener('change', act(async ({ value }) => {
    examples.value = '';
    await show(tabs[Number(value)]);
  }));

  // Solves a proof of work: the number whose SHA-256, after the salt, is the challenge.
  const solve = async (parameters) => {
    const { salt, challenge, maxNumber } = JSON.parse(parameters);
    const bytes = new TextEncoder();
    const hash = async (number) => {
      const digest = await crypto.subtle.digest('SHA-256', bytes.encode(salt + number));
      return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
    };
    for (let from = 0; from <= maxNumber; from += 1000) {
      const found = (await Promise.all(Array.from({ length: 1000 }, (_, n) => hash(from + n)))).indexOf(challenge);
      if (found >= 0) return String(from + found);
    }
    throw new Error('The proof of work has no answer.');
  };

  // Executes the document of the editor as its button does, and returns the data of the answer. A refusal is thrown.
  const execute = async () => {
    const button = () => document.querySelector('.graphiql-execute-button');
    await frame(); // GraphiQL knows the document
    for (let tries = 0; tries < 600 && button().ariaLabel.startsWith('Stop'); tries++) await frame(); // the answer before it is shown
    const answer = await new Promise((resolve) => {
      answered = resolve;
      button().click();
    });
    answered = () => {};
    const refused = answer?.errors?.[0] ?? Object.values(answer?.data ?? {}).flatMap((field) => field?.userErrors ?? [])[0];
    if (refused || !answer?.data) throw new Error(refused?.message ?? 'No answer.');
    return answer.data;
  };

  // Runs all examples one after the other, with values of earlier answers in place of names in capitals.
  const buyOne = async () => {
    const values = { 'kind: TEXT': 'kind: PROOF_OF_WORK', 'walk-through-0001': `playground-${Date.now()}` };
    let order;
    for (const [n, { title, query }] of tabs.entries()) {
      say(`${title}…`);
      let text = query.replace(/^(# .*\n)(?:# .*\n)*/, '$1'); // notes for those who do it by hand
      for (const [name, value] of Object.entries(values)) text = text.replaceAll(name, value);
      if (n === 0) await show({ query: text });
      else editor().setValue(text);
      const data = await execute();
      const challenge = data.createCaptcha?.challenge;
      if (challenge) Object.assign(values, { CHALLENGE_ID: challenge.id, ANSWER: await solve(challenge.parameters) });
      if (data.issueSeckillPath) values.PATH_TOKEN = data.issueSeckillPath.path.token;
      if (data.placeOrder) values.TASK_ID = data.placeOrder.orderTask.id;
      const task = data.orderTaskStatus?.orderTask;
      if (task?.failure) throw new Error(task.failure.message);
      order ??= task?.order;
    }
    const { number, total } = order;
    say(`Bought: order ${number}, ${total.amount} ${total.currencyCode}`);
  };
  const buy = bar.querySelector('#buy');
  buy.hidden = tabs.length === 0 || tabs.some(({ query }) => query.includes('SALE_ID')); // without a demo there is no sale to buy in
  buy.addEventListener('click', act(async () => {
    buy.disabled = true;
    await buyOne().finally(() => (buy.disabled = false));
  }));

  // GraphiQL opens with what it held last, which may be another server's: a demo has
  // new ids at each start.
  if (localStorage.getItem('playground-tabs') !== text) {
    for (const name of ['tabState', 'query', 'variables', 'headers']) localStorage.removeItem(`graphiql:${name}`);
    localStorage.setItem('playground-tabs', text);
  }
  const page = React.createElement(GraphiQL, {
    fetcher,
    defaultQuery: '', // of a new tab
    defaultTabs: tabs.length > 0 ? tabs.slice(0, 1) : undefined,
    defaultEditorToolsVisibility: true,
    inputValueDeprecation: true,
    isHeadersEditorEnabled: true,
    shouldPersistHeaders: false, // a token must not stay in the browser's storage
  });
  ReactDOM.createRoot(document.getElementById('graphiql')).render(page);
})();
