import { Fault, faultOf, type GraphQLFault } from './fault.ts';
import type { Doc, Operation } from './operation.ts';

/** Timeout of a request in ms. The server's own timeout is shorter. */
const ANSWER_MS = 10_000;
/** Codes for unknown documents: the server has another build than this client. */
const OUTDATED = ['PERSISTED_QUERY_NOT_FOUND', 'PERSISTED_QUERY_NOT_SUPPORTED', 'PERSISTED_QUERY_ONLY'];

/** How requests are sent. */
export interface HttpOptions {
  /** Address of the API: `https://shop.example.com/graphql`, or a path on the origin of the page. */
  url: string;
  /** Headers of every request, read each time. */
  headers?: () => Record<string, string>;
  /** BCP 47 tag of the language of texts; the server's default without it. */
  language?: () => string;
  /** Called when the server does not know a document: the page is older than the server. */
  outdated?: () => void;
  /** The WebSocket of the platform; null uses server-sent events at once. */
  webSocket?: typeof WebSocket | null;
}

/** Requests to one API. */
export class Http {
  constructor(readonly options: HttpOptions) {}

  /** The WebSocket of the platform; null where there is none. */
  get webSocket(): typeof WebSocket | null {
    const { webSocket } = this.options;
    return webSocket === undefined ? (globalThis.WebSocket ?? null) : webSocket;
  }

  /** The address of the API for WebSockets. */
  get socketUrl(): string {
    const url = new URL(this.options.url, globalThis.location?.href);
    return url.href.replace(/^http/, 'ws');
  }

  /** Headers of a request: the token, the language. */
  headers(bearer: string | null, accept: string): Record<string, string> {
    const { headers, language } = this.options;
    return {
      'content-type': 'application/json',
      accept,
      ...headers?.(),
      ...(language && { 'accept-language': language() }),
      ...(bearer && { authorization: `Bearer ${bearer}` }),
    };
  }

  /** Sends one operation and returns its data, or throws a Fault. */
  async post<R, V>(doc: Doc<R, V>, variables: V, bearer: string | null, signal?: AbortSignal): Promise<R> {
    const timeout = AbortSignal.timeout(ANSWER_MS);
    let response: Response;
    let answer: { data?: R | null; errors?: GraphQLFault[] } | null;
    try {
      response = await fetch(this.options.url, {
        method: 'POST',
        headers: this.headers(bearer, 'application/graphql-response+json, application/json'),
        body: JSON.stringify(body(doc, variables)),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      answer = await response.json().catch(() => null);
    } catch (thrown) {
      if (signal?.aborted) throw thrown;
      throw new Fault(timeout.aborted ? 'TIMEOUT' : 'NETWORK', String(thrown));
    }
    if (answer?.errors?.length && !hasData(answer.data)) throw withRetryAfter(this.faultOf(answer.errors), response);
    if (answer?.data) return answer.data;
    throw withRetryAfter(new Fault(response.status >= 500 ? 'UNAVAILABLE' : 'INTERNAL', `HTTP ${response.status}`), response);
  }

  /** The fault of a list of errors. */
  faultOf(errors: readonly GraphQLFault[]): Fault {
    const fault = faultOf(errors);
    if (OUTDATED.includes(fault.code)) this.options.outdated?.();
    return fault;
  }
}

/** The request body of an operation: its text, or the hash of the trusted document. */
export function body<R, V>(doc: Doc<R, V>, variables: V): Record<string, unknown> {
  const { id, name, text } = doc as Operation<R, V>;
  if (text) return { query: text, operationName: name, variables };
  return { operationName: name, variables, extensions: { persistedQuery: { version: 1, sha256Hash: id } } };
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
