import { FailureParts } from '@seckill/client/documents/failure';
import { graphql } from '@seckill/client/tada';

/** The text of a mutation whose input is named after it, and which returns fields and userErrors. */
type Mutation<Name extends string, Fields extends string> =
  `mutation ${Name}($input: ${Name}Input!) { ${Uncapitalize<Name>}(input: $input) { ${Fields} userErrors { ...FailureParts } } }`;

/** The document of such a mutation. The build writes the same text (build/documents.ts). */
export function mutation<const Name extends string, const Fields extends string, const Parts extends Parameters<typeof graphql>[1] & readonly unknown[] = []>(
  _name: Name,
  _fields: Fields,
  _parts?: Parts,
) {
  return graphql('' as Mutation<Name, Fields>, [FailureParts, ...(_parts ?? [])] as unknown as [typeof FailureParts, ...Parts]);
}
