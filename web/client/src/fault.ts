/** Why a request failed. Expected refusals are not faults: they are in userErrors. */
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

/** A failed request. */
export class Fault extends Error {
  constructor(
    readonly code: FaultCode | string,
    message: string,
    /** Least delay of a retry in ms; 0 where the server names none. */
    readonly retryAfterMs = 0,
    /** The id of the error in the server's log. */
    readonly errorId: string | null = null,
  ) {
    super(message);
  }

  /** Whether the same request may succeed when sent again. */
  get transient(): boolean {
    return ['NETWORK', 'RATE_LIMITED', 'OVERLOADED', 'UNAVAILABLE', 'TIMEOUT'].includes(this.code);
  }
}

/** One entry of the top-level errors list. */
export interface GraphQLFault {
  message: string;
  extensions?: { code?: string; errorId?: string; retryAfterMs?: number };
}

/** The fault of a list of errors. */
export function faultOf(errors: readonly GraphQLFault[]): Fault {
  const first = errors[0];
  const { code = 'INTERNAL', errorId, retryAfterMs } = first?.extensions ?? {};
  return new Fault(code, first?.message ?? '', retryAfterMs ?? 0, errorId ?? null);
}

/** Any thrown value as a fault. */
export function toFault(thrown: unknown): Fault {
  return thrown instanceof Fault ? thrown : new Fault('INTERNAL', String(thrown));
}
