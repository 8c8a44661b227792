import { body, Http } from '@seckill/client/http';
import type { Doc } from '@seckill/client/operation';
import { tag } from '../i18n/lang';
import { takeInlined } from './first';
import { tabStore } from './storage';

/** Least time between two reloads in ms, so that a rolling update causes no loop. */
const RENEW_MS = 60_000;

/** Reloads the page, whose new files match the server. */
function renewPage(): void {
  if (Date.now() - Number(tabStore.getItem('renewed')) < RENEW_MS) return;
  tabStore.setItem('renewed', String(Date.now()));
  location.reload();
}

/** Requests of the page, the first of which the server may have answered in the page. */
class PageHttp extends Http {
  override async post<R, V>(doc: Doc<R, V>, variables: V, bearer: string | null, signal?: AbortSignal): Promise<R> {
    const inlined = bearer === null ? takeInlined(JSON.stringify(body(doc, variables))) : null;
    return inlined ? (inlined as R) : super.post(doc, variables, bearer, signal);
  }
}

/** The API of the page's own server; the session is in a cookie. */
export const http = new PageHttp({
  url: '/graphql',
  headers: () => ({ 'x-seckill-session': 'cookie' }),
  language: tag,
  outdated: renewPage,
});
