import { FailureParts } from '@seckill/client/documents/failure';
import { MoneyParts } from '@seckill/client/documents/money';
import { graphql } from '@seckill/client/tada';

export const AuthorizeEntry = graphql(
  `
  mutation AuthorizeEntry($input: AuthorizeEntryInput!) {
    authorizeEntry(input: $input) {
      payment {
        id
        status
        redirectUrl
        amount {
          ...MoneyParts
        }
        embedded {
          clientSecret
          publishableKey
          scriptUrl
        }
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [MoneyParts, FailureParts],
);
