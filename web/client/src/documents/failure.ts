import { graphql } from '../tada.ts';

export const ChallengeParts = graphql(`
  fragment ChallengeParts on CaptchaChallenge {
    id
    kind
    prompt
    image
    media
    parameters
    expiresAt
    early
  }
`);

export const FailureParts = graphql(
  `
  fragment FailureParts on UserError {
    __typename
    code
    message
    path
    ... on CaptchaError {
      challenge {
        ...ChallengeParts
      }
    }
    ... on RateLimitedError {
      cause
      retryAfterMs
    }
    ... on SaleNotOpenError {
      phase
      startsAt
      serverTime
    }
    ... on SoldOutError {
      waitlistOpen
    }
    ... on PurchaseLimitError {
      limit
      remaining
      limitBy
      wholeSale
    }
    ... on AlreadyOrderedError {
      order {
        id
      }
    }
  }
`,
  [ChallengeParts],
);
