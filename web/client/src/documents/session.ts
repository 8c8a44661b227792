import { graphql } from '../tada.ts';
import { FailureParts } from './failure.ts';

export const SecretTokenParts = graphql(`
  fragment SecretTokenParts on AuthTokens {
    accessToken
    accessTokenExpiresAt
    refreshToken
  }
`);

export const SignIn = graphql(
  `
  mutation SignIn($input: LoginInput!) {
    login(input: $input) {
      tokens {
        ...SecretTokenParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [SecretTokenParts, FailureParts],
);

export const RefreshTokens = graphql(
  `
  mutation RefreshTokens($input: RefreshSessionInput!) {
    refreshSession(input: $input) {
      tokens {
        ...SecretTokenParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [SecretTokenParts, FailureParts],
);
