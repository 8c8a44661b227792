import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';

export const ServiceTokens = graphql(`
  query ServiceTokens {
    serviceTokens {
      id
      name
      scopes
      createdBy {
        displayName
      }
      expiresAt
      lastUsedAt
    }
  }
`);

export const CreateToken = graphql(
  `
  mutation CreateToken($input: CreateServiceTokenInput!) {
    act: createServiceToken(input: $input) {
      secret
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const RevokeToken = graphql(
  `
  mutation RevokeToken($input: RevokeServiceTokenInput!) {
    act: revokeServiceToken(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
