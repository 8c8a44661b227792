import { graphql } from '../api/tada';
import { FailureParts } from './account';
import { MoneyParts } from './buyer';
import { OrderParts } from './orders';

export const PayOrder = graphql(
  `
  mutation PayOrder($input: PayOrderInput!) {
    payOrder(input: $input) {
      payment {
        id
        status
        qrCode
        redirectUrl
        option {
          id
          kind
        }
        expiresAt
        amount {
          ...MoneyParts
        }
      }
      order {
        ...OrderParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [MoneyParts, OrderParts, FailureParts],
);

export const CancelOrder = graphql(
  `
  mutation CancelOrder($input: CancelOrderInput!) {
    cancelOrder(input: $input) {
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
