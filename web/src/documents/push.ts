import { FailureParts } from '@seckill/client/documents/failure';
import { graphql } from '@seckill/client/tada';

export const SubscribePush = graphql(
  `
  mutation SubscribePush($input: SubscribePushInput!) {
    subscribePush(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const UnsubscribePush = graphql(
  `
  mutation UnsubscribePush($input: UnsubscribePushInput!) {
    unsubscribePush(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
