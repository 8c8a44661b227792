/** A document with the types of its result and its variables; also the typed documents of other libraries. */
export interface Doc<Result, Variables> {
  readonly __apiType?: ((variables: Variables) => Result) | undefined;
}

/** An operation as it is sent. */
export interface Operation<Result, Variables, _Fragment = void> extends Doc<Result, Variables> {
  /** SHA-256 of the text. */
  readonly id: string;
  readonly name: string;
  /** Missing where only the hash of a trusted document is sent. */
  readonly text?: string;
}

type ApiType<D> = D extends { readonly __apiType?: infer F } ? NonNullable<F> : never;

/** The result of a document. */
export type ResultOf<D> = ApiType<D> extends (variables: never) => infer Result ? Result : never;

/** The variables of a document. */
export type VariablesOf<D> = ApiType<D> extends (variables: infer Variables) => unknown ? Variables : never;

/** An operation of your own: its name and its text, with the types that you state. */
export function operation<Result, Variables = Record<string, never>>(name: string, text: string): Operation<Result, Variables> {
  return { id: '', name, text };
}
