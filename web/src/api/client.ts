import { signal } from '@preact/signals';
import { Client } from '@seckill/client/client';
import { lang } from '../i18n/lang';
import { clock, now } from './clock';
import { http } from './http';
import { bearer, onUserChange, currentUser, refused } from './session';
import { tabStore } from './storage';

/** The client of the page. */
export const client = new Client({
  http,
  clock,
  store: tabStore,
  session: { signedIn: () => currentUser.peek() !== null, token: bearer, refused },
});

/** How live data arrives. */
export const { connection } = client;

/** Sends one operation as the signed-in user. Throws a Fault. */
export const request: Client['request'] = (doc, variables, signal) => client.request(doc, variables, signal);

/** Follows a subscription until its last state or until the returned function is called. */
export const follow: Client['follow'] = (doc, variables, sink) => client.follow(doc, variables, sink);

/** When live data was last known to arrive, in ms of server time; null while it arrives, and before it first did. */
export const lostAt = signal<number | null>(null);
let heard = false;
connection.subscribe(({ state }) => {
  if (state === 'live' || state === 'polling') {
    heard = true;
    lostAt.value = null;
  } else if (heard && state === 'retrying') lostAt.value ??= now();
});

onUserChange(() => client.renew());
lang.subscribe(() => client.restart()); // texts of the server are in the language of the subscription
