import { initGraphQLTada } from 'gql.tada';
import type { introspection } from './schema';

/**
 * Types a document against the API. The build replaces each document by an
 * operation (build/documents.ts), so this function is never called.
 */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { DateTime: string; Decimal: string; CurrencyCode: string; URL: string };
}>();
