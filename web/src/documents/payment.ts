import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';
import { OrderParts } from '@seckill/client/documents/order';

export const RequestRefund = graphql(
  `
  mutation RequestRefund($input: RequestRefundInput!) {
    requestRefund(input: $input) {
      order {
        ...OrderParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [OrderParts, FailureParts],
);

export const MyOrderUpdates = graphql(
  `
  subscription MyOrderUpdates {
    myOrderUpdates {
      kind
      serverTime
      order {
        ...OrderParts
      }
    }
  }
`,
  [OrderParts],
);
