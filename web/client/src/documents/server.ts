import { graphql } from '../tada.ts';
import { ChallengeParts, FailureParts } from './failure.ts';

export const Clock = graphql(`
  query Clock {
    serverInfo {
      serverTime
    }
  }
`);

export const CreateCaptcha = graphql(
  `
  mutation CreateCaptcha($input: CreateCaptchaInput!) {
    createCaptcha(input: $input) {
      challenge {
        ...ChallengeParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [ChallengeParts, FailureParts],
);
