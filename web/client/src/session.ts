import { Fault } from './fault.ts';
import type { Http } from './http.ts';
import { RefreshTokens, SignIn } from './documents/session.ts';
import type { Kept } from './storage.ts';
import type { Failure } from './types.ts';

/** Where access tokens come from. */
export interface Session {
  /** Whether a user is signed in, even while there is no valid token. */
  signedIn(): boolean;
  /** A valid access token; null when signed out. Throws a transient Fault when none can be had now. */
  token(): Promise<string | null>;
  /** The server refused this token: the next `token` returns another one. */
  refused(token: string | null): void;
}

/** A session without a user. */
export const signedOut: Session = { signedIn: () => false, token: () => Promise.resolve(null), refused: () => {} };

/** A session with a token that the caller renews: `read` returns the present one. */
export function tokenSession(read: () => string | null | Promise<string | null>): Session {
  return { signedIn: () => true, token: async () => read(), refused: () => {} };
}

/** A refusal by the server as an exception. */
export class Refusal extends Error {
  constructor(readonly failure: Failure) {
    super(`${failure.code}: ${failure.message}`);
  }
}

/** Refresh when less than this is left, in ms. */
const MARGIN_MS = 20_000;

/** Name of the refresh token in a storage. */
const STORED = 'seckill-session';

/** A session of account and password. Its tokens are in memory, and refreshed before they expire. */
export class PasswordSession implements Session {
  #access: { token: string; expires: number } | null = null;
  #refresh: string | null = null;
  #refreshing: Promise<void> | null = null;
  /** Called when a user has signed in, and when the session has ended. */
  changed: () => void = () => {};

  /** `store` keeps the refresh token, so that the session outlives a visit to the page of a payment provider: `kept(() => sessionStorage)`. */
  constructor(
    readonly http: Http,
    readonly store?: Kept,
  ) {
    this.#refresh = store?.getItem(STORED) ?? null;
  }

  /** Signs in. Throws a Refusal or a Fault. */
  async signIn(
    account: string,
    password: string,
    more: { oneTimeCode?: string; captcha?: { challengeId: string; answer: string } } = {},
  ): Promise<void> {
    const { login } = await this.http.post(SignIn, { input: { account, password, ...more } }, null);
    const failure = login?.userErrors[0];
    if (failure) throw new Refusal(failure);
    this.#keep(login?.tokens ?? null);
  }

  signedIn(): boolean {
    return this.#refresh !== null;
  }

  async token(): Promise<string | null> {
    if (this.#refresh && (!this.#access || this.#access.expires - Date.now() < MARGIN_MS)) {
      await (this.#refreshing ??= this.#renew().finally(() => (this.#refreshing = null)));
    }
    return this.#access?.token ?? null;
  }

  refused(token: string | null): void {
    if (this.#access?.token === token) this.#access = null;
  }

  async #renew(): Promise<void> {
    const used = this.#refresh;
    const { refreshSession } = await this.http.post(RefreshTokens, { input: { refreshToken: used } }, null);
    if (this.#refresh !== used) return; // another sign-in was faster
    if (refreshSession?.userErrors[0]?.code === 'RATE_LIMITED') throw new Fault('RATE_LIMITED', '', 1000);
    this.#keep(refreshSession?.tokens ?? null);
  }

  #keep(tokens: { accessToken: string; accessTokenExpiresAt: string; refreshToken: string | null } | null): void {
    this.#access = tokens && { token: tokens.accessToken, expires: Date.parse(tokens.accessTokenExpiresAt) };
    const before = this.signedIn();
    this.#refresh = tokens?.refreshToken ?? null;
    if (this.#refresh) this.store?.setItem(STORED, this.#refresh);
    else this.store?.removeItem(STORED);
    if (before !== this.signedIn()) this.changed();
  }

  /** Forgets the tokens of this page. */
  signOut(): void {
    this.#keep(null);
  }
}
