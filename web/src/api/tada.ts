import { initGraphQLTada, type TadaDocumentNode } from 'gql.tada';
import type { introspection } from './schema';

/**
 * Types a document against the API. The build replaces each document by an
 * operation (build/documents.ts), so this function is never called in a browser.
 */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { DateTime: string; Decimal: string; CurrencyCode: string; URL: string };
}>();

/** A typed document with its result and its variables. */
export type Doc<Result, Variables> = TadaDocumentNode<Result, Variables, void>;

export type { ResultOf, VariablesOf } from 'gql.tada';

/** A document at run time. It has its text during development only. */
export interface Operation {
  id: string;
  name: string;
  text?: string;
}
