import { lang } from '../i18n/lang';
import { takeFirst } from './first';
import { Fault, faultOf, type GraphQLFault } from './fault';
import type { Doc, Operation } from './tada';

/** Timeout of a request in ms. The server's own timeout is shorter. */
const ANSWER_MS = 10_000;

/** Where the API is. */
export const ENDPOINT = '/graphql';

/** The request body of an operation: the hash of the trusted document and its variables. */
export function body<R, V>(doc: Doc<R, V>, variables: V): Record<string, unknown> {
  const { id, name, text } = doc as unknown as Operation;
  if (text) return { query: text, operationName: name, variables };
  return { operationName: name, variables, extensions: { persistedQuery: { version: 1, sha256Hash: id } } };
}

/** Headers of a request: the token, the language, and that the session is in a cookie. */
export function headers(bearer: string | null, accept: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept,
    'x-seckill-session': 'cookie',
    'accept-language': lang.value === 'zh' ? 'zh-CN' : 'en',
    ...(bearer && { authorization: `Bearer ${bearer}` }),
  };
}

/** Sends one operation and returns its data, or throws a Fault. */
export async function post<R, V>(
  doc: Doc<R, V>,
  variables: V,
  bearer: string | null,
  signal?: AbortSignal,
): Promise<R> {
  const text = JSON.stringify(body(doc, variables));
  const inlined = bearer === null ? takeFirst(text) : null;
  if (inlined) return inlined as R;
  const timeout = AbortSignal.timeout(ANSWER_MS);
  let response: Response;
  let answer: { data?: R | null; errors?: GraphQLFault[] } | null;
  try {
    response = await fetch(ENDPOINT, {
      method: 'POST',
      headers: headers(bearer, 'application/graphql-response+json, application/json'),
      body: text,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    answer = await response.json().catch(() => null);
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    throw new Fault(timeout.aborted ? 'TIMEOUT' : 'NETWORK', String(thrown));
  }
  if (answer?.errors?.length && !hasData(answer.data)) throw withRetryAfter(faultOf(answer.errors), response);
  if (answer?.data) return answer.data;
  throw withRetryAfter(new Fault(response.status >= 500 ? 'UNAVAILABLE' : 'INTERNAL', `HTTP ${response.status}`), response);
}

/** Root fields are nullable, so data may be an object of nothing but nulls. */
function hasData(data: unknown): boolean {
  return data != null && Object.values(data).some((field) => field !== null);
}

function withRetryAfter(fault: Fault, response: Response): Fault {
  const seconds = Number(response.headers.get('retry-after'));
  if (fault.retryAfterMs || !seconds) return fault;
  return new Fault(fault.code, fault.message, seconds * 1000, fault.errorId);
}
