import { forTab } from './storage';

/** Why a request brought no answer. Expected refusals are not faults: they come in userErrors. */
export type FaultCode =
  | 'NETWORK'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'RATE_LIMITED'
  | 'OVERLOADED'
  | 'UNAVAILABLE'
  | 'TIMEOUT'
  | 'INTERNAL';

/** A request that brought no answer. */
export class Fault extends Error {
  constructor(
    readonly code: FaultCode | string,
    message: string,
    /** Wait at least this long before asking again; 0 = not said. */
    readonly retryAfterMs = 0,
    /** To quote to support. */
    readonly errorId: string | null = null,
  ) {
    super(message);
  }

  /** Whether the same request may succeed when sent again. */
  get passing(): boolean {
    return ['NETWORK', 'RATE_LIMITED', 'OVERLOADED', 'UNAVAILABLE', 'TIMEOUT'].includes(this.code);
  }
}

/** One entry of the top-level errors list. */
export interface GraphQLFault {
  message: string;
  extensions?: { code?: string; errorId?: string; retryAfterMs?: number };
}

/** Codes by which the server says that it does not know our documents: it is newer than this page. */
const OUTDATED = ['PERSISTED_QUERY_NOT_FOUND', 'PERSISTED_QUERY_ONLY'];

/** Not more often than this, in ms, so that a server between two versions makes no loop. */
const RENEW_MS = 60_000;

/** Loads the page anew: the files that the server has now fit it. */
function renewPage(): void {
  if (Date.now() - Number(forTab.getItem('renewed')) < RENEW_MS) return;
  forTab.setItem('renewed', String(Date.now()));
  location.reload();
}

/** The fault that an errors list tells. */
export function faultOf(errors: readonly GraphQLFault[]): Fault {
  const first = errors[0];
  const { code = 'INTERNAL', errorId, retryAfterMs } = first?.extensions ?? {};
  if (OUTDATED.includes(code)) renewPage();
  return new Fault(code, first?.message ?? '', retryAfterMs ?? 0, errorId ?? null);
}

/** Any thrown value as a fault. */
export function toFault(thrown: unknown): Fault {
  return thrown instanceof Fault ? thrown : new Fault('INTERNAL', String(thrown));
}
