import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/sale';
import { FailureParts } from '@seckill/client/documents/failure';

export const ListedRefundParts = graphql(
  `
  fragment ListedRefundParts on Refund {
    id
    state
    quantity
    reason
    createdAt
    decidedAt
    decision
    failure
    decidedBy {
      displayName
    }
    amount {
      ...MoneyParts
    }
    order {
      id
      number
      quantity
      buyer {
        displayName
        account
      }
      sale {
        id
        title
      }
    }
  }
`,
  [MoneyParts],
);

export const Refunds = graphql(
  `
  query Refunds {
    waiting: refunds(first: 50, filter: { states: [REQUESTED, FAILED] }) {
      totalCount
      edges {
        node {
          ...ListedRefundParts
        }
      }
    }
    decided: refunds(last: 20, filter: { states: [APPROVED, DONE, REFUSED, SETTLED] }) {
      edges {
        node {
          ...ListedRefundParts
        }
      }
    }
  }
`,
  [ListedRefundParts],
);

export const SettleRefund = graphql(
  `
  mutation SettleRefund($input: SettleRefundInput!) {
    settleRefund(input: $input) {
      refund {
        id
        state
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
