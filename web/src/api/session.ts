/**
 * The session. The access token is in memory, the refresh token in an
 * HttpOnly cookie. localStorage has the user (id, name, account, role),
 * so that a reload shows it at once. A refresh token is valid once, so
 * tabs refresh under a lock and share the result.
 */
import { signal } from '@preact/signals';
import { Logout, PersonParts, RefreshSession, TokenParts, Viewer } from '../documents/account';
import { now } from './clock';
import { forgetSubscription } from './push';
import { Fault, toFault } from '@seckill/client/fault';
import { http } from './http';
import { persistentStore } from './storage';
import type { ResultOf } from '@seckill/client/operation';

/** A user. */
export type User = ResultOf<typeof PersonParts>;
type Tokens = ResultOf<typeof TokenParts>;

/** Refresh when less than this is left, in ms. */
const MARGIN_MS = 20_000;
const STORE = 'session';

/** The user of the last visit, and the subject of their tokens. */
function record(): { person?: User; subject?: string } | null {
  try {
    return JSON.parse(persistentStore.getItem(STORE) ?? 'null');
  } catch {
    return null;
  }
}

const kept = (): User | null => record()?.person ?? null;

function keep(person: User, subject: string | undefined): void {
  persistentStore.setItem(STORE, JSON.stringify({ person, subject }));
}

/** The subject of an access token, a JWT. */
function subjectOf(token: string): string | undefined {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))).sub;
  } catch {
    return undefined;
  }
}

/** Whether the browser has a session, maybe of a page of another origin. The server sets this cookie beside the one of the session. */
const hasCookie = (): boolean => document.cookie.includes('seckill_signed_in=');

/** The signed-in user; null when signed out. Known at once after a reload, verified by the first refresh. */
export const currentUser = signal<User | null>(kept());

let access: { token: string; expires: number } | null = null;

const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(STORE) : null;
type Notice = { person: User; token: string; expires: number } | { person: null };

const listeners = new Set<() => void>();

/** Calls back when a user signs in or out. */
export function onUserChange(call: () => void): void {
  listeners.add(call);
}

function setUser(next: User | null): void {
  const other = next?.id !== currentUser.peek()?.id;
  currentUser.value = next;
  if (other) for (const call of listeners) call();
}

channel?.addEventListener('message', ({ data }: MessageEvent<Notice>) => {
  access = data.person ? { token: data.token, expires: data.expires } : null;
  setUser(data.person);
});

/** Takes over the tokens of a sign-in, registration or refresh. */
export function startSession(tokens: Tokens, who: User): void {
  access = { token: tokens.accessToken, expires: Date.parse(tokens.accessTokenExpiresAt) };
  keep(who, subjectOf(tokens.accessToken));
  channel?.postMessage({ person: who, ...access } satisfies Notice);
  setUser(who);
}

function forget(): void {
  access = null;
  persistentStore.removeItem(STORE);
  channel?.postMessage({ person: null } satisfies Notice);
  setUser(null);
}

/** The access token, refreshed when it is about to expire; null when signed out. */
export async function bearer(): Promise<string | null> {
  if (!currentUser.peek()) return null;
  if (!access || access.expires - now() < MARGIN_MS) await refresh();
  return access?.token ?? null;
}

/** Marks the access token as refused, so that the next `bearer` fetches another. */
export function refused(token: string | null): void {
  if (access?.token === token) access = null;
}

/** Drops the access token: the next one has the rights that the account has now. */
export function renewAccess(): void {
  access = null;
}

let refreshing: Promise<void> | null = null;

/** Exchanges the cookie for an access token and the next cookie. Throws transient faults; an invalid session signs out. */
function refresh(): Promise<void> {
  return (refreshing ??= withLock(exchange).finally(() => (refreshing = null)));
}

async function withLock(work: () => Promise<void>): Promise<void> {
  // Plain http has no locks; there the server accepts a refresh token twice within its grace period.
  await (navigator.locks ? navigator.locks.request(STORE, work) : work());
}

async function exchange(): Promise<void> {
  const before = kept();
  if (access && access.expires - now() >= MARGIN_MS) return; // another tab was first
  if (!before && currentUser.peek()) return forget(); // signed out in another tab
  const { refreshSession } = await http.post(RefreshSession, { input: {} }, null);
  if (kept()?.id !== before?.id) return; // signed out, or in as another user, meanwhile
  if (refreshSession?.tokens) return takeOver(refreshSession.tokens);
  const code = refreshSession?.userErrors[0]?.code;
  if (code === 'RATE_LIMITED') throw new Fault('RATE_LIMITED', '', 1000);
  forget();
}

/** Takes over refreshed tokens. Their user is read unless it is the kept one: a page of another origin may have signed in as another user. */
async function takeOver(tokens: Tokens): Promise<void> {
  const { person, subject } = record() ?? {};
  const same = person && subject === subjectOf(tokens.accessToken);
  const who = same ? person : (await http.post(Viewer, {}, tokens.accessToken)).viewer;
  if (who) startSession(tokens, who);
}

/** Takes over the session that is in the cookie after a sign-in at a provider or on a page of another origin; false if there is none. */
export async function resume(): Promise<boolean> {
  await refresh();
  return currentUser.peek() !== null;
}

/** Verifies the session and reads the user. Transient faults are left to the next request. */
export async function restore(): Promise<void> {
  try {
    if (!currentUser.peek()) return void (hasCookie() && (await resume()));
    const token = await bearer();
    if (!token) return;
    const { viewer } = await http.post(Viewer, {}, token);
    if (viewer && kept()?.id === viewer.id) {
      keep(viewer, record()?.subject);
      setUser(viewer);
      currentUser.value = viewer;
    }
  } catch (thrown) {
    if (toFault(thrown).code === 'UNAUTHENTICATED') forget(); // no other fault ends the session
  }
}

/** Signs out, here or everywhere. */
export async function signOut(everywhere: boolean): Promise<void> {
  const token = await bearer().catch(() => null);
  void forgetSubscription().catch(() => null); // may wait for the push service
  if (token) await http.post(Logout, { input: { everywhere } }, token).catch(() => null);
  forget();
}
