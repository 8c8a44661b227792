import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/money';
import { mutation } from './mutation';

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

/** How many refunds wait, and how many are decided. */
export const RefundCounts = graphql(`
  query RefundCounts {
    waiting: refunds(first: 1, filter: { states: [REQUESTED, FAILED] }) {
      totalCount
    }
    decided: refunds(first: 1, filter: { states: [APPROVED, DONE, REFUSED, SETTLED] }) {
      totalCount
    }
  }
`);

export const WaitingRefunds = graphql(
  `
  query WaitingRefunds($after: String) {
    waiting: refunds(first: 50, after: $after, filter: { states: [REQUESTED, FAILED] }) {
      edges {
        node {
          ...ListedRefundParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [ListedRefundParts],
);

/** The decided ones from the end, because the newest are asked for. */
export const DecidedRefunds = graphql(
  `
  query DecidedRefunds($before: String) {
    decided: refunds(last: 20, before: $before, filter: { states: [APPROVED, DONE, REFUSED, SETTLED] }) {
      edges {
        node {
          ...ListedRefundParts
        }
      }
      pageInfo {
        hasPreviousPage
        startCursor
      }
    }
  }
`,
  [ListedRefundParts],
);

export const SettleRefund = mutation('SettleRefund', `refund { id state } intervention { state sale { id } }`);
