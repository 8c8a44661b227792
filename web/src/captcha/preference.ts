import { persistentStore } from '../api/storage';

const KEY = 'captcha';

/** Whether the user has not chosen pictures: then the browser solves the captcha if the sale allows it. */
export const byBrowser = (): boolean => persistentStore.getItem(KEY) !== 'picture';

/** Keeps the user's choice. */
export const preferBrowser = (browser: boolean): void => persistentStore.setItem(KEY, browser ? 'browser' : 'picture');

/** The kind of captcha to ask for. */
export const wantedKind = (): { kind: 'PROOF_OF_WORK' } | { automatic: boolean } =>
  persistentStore.getItem(KEY) === 'browser' ? { kind: 'PROOF_OF_WORK' } : { automatic: byBrowser() };
