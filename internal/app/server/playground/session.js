// The playground's session. It is the shop's: the refresh token is in a cookie that no
// script can read, and tabs of the shop and of the playground share the access token
// under the names that web/src/api/session.ts uses. A sign-in by a document in the
// editor replaces it until the page is left.
(() => {
  const NAME = 'session';
  const MARGIN_MS = 20_000; // refresh when less than this is left
  const channel = new BroadcastChannel(NAME);
  const person = '{ id displayName account role }';
  let who = null; // {id, displayName, account, role}
  let access = null; // {token, expires}
  let own = null; // access token of a sign-in in the editor
  let changed = () => {};

  const call = async (query, variables, token) => {
    const response = await fetch('/graphql', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-seckill-session': 'cookie',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = await response.json();
    if (errors?.length) throw new Error(errors[0].message);
    return data;
  };

  const set = (next, tokens) => {
    who = next;
    access = next && { token: tokens.accessToken, expires: Date.parse(tokens.accessTokenExpiresAt) };
    if (next) localStorage.setItem(NAME, JSON.stringify({ person: next }));
    else localStorage.removeItem(NAME);
    channel.postMessage(next ? { person: next, ...access } : { person: null });
    changed();
  };

  channel.addEventListener('message', ({ data }) => {
    who = data.person;
    access = data.person ? { token: data.token, expires: data.expires } : null;
    changed();
  });

  const locked = (work) => (navigator.locks ? navigator.locks.request(NAME, work) : work());

  const refresh = () =>
    locked(async () => {
      if (access && access.expires - Date.now() >= MARGIN_MS) return; // another tab was first
      const { refreshSession } = await call(
        'mutation ($input: RefreshSessionInput!) { refreshSession(input: $input) { tokens { accessToken accessTokenExpiresAt } userErrors { code } } }',
        { input: {} },
      );
      if (!refreshSession.tokens) return set(null);
      const { viewer } = await call(`{ viewer ${person} }`, {}, refreshSession.tokens.accessToken);
      set(viewer, refreshSession.tokens);
    });

  window.playgroundSession = {
    /** Calls back when the user changes, and now. */
    watch(listener) {
      changed = () => listener({ who, own });
      changed();
    },

    /** Takes over the session of the shop, if this browser has one. */
    async restore() {
      if (localStorage.getItem(NAME)) await refresh();
    },

    /** Returns the access token, refreshed when it is about to expire, or null. */
    async bearer() {
      if (own) return own.token;
      if (!who) return null;
      if (!access || access.expires - Date.now() < MARGIN_MS) await refresh();
      return access?.token ?? null;
    },

    /** Signs in. Throws the server's message. */
    async signIn(account, password) {
      const { login } = await call(
        `mutation ($input: LoginInput!) { login(input: $input) {
          tokens { accessToken accessTokenExpiresAt } user ${person} userErrors { message } } }`,
        { input: { account, password } },
      );
      if (!login.tokens) throw new Error(login.userErrors[0].message);
      own = null;
      set(login.user, login.tokens);
    },

    async signOut() {
      const token = await this.bearer();
      own = null;
      if (token) await call('mutation { logout(input: {}) { userErrors { code } } }', {}, token);
      set(null);
    },

    /** Uses the tokens that a document in the editor received. */
    adopt(data) {
      const signed = Object.values(data ?? {}).find((field) => field?.tokens?.accessToken);
      if (!signed) return;
      own = { token: signed.tokens.accessToken };
      changed();
    },
  };
})();
