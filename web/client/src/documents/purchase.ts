import { graphql } from '../tada.ts';
import { FailureParts } from './failure.ts';
import { MoneyParts } from './money.ts';

/** What the page of a sale shows of an order. */
export const BoughtParts = graphql(
  `
  fragment BoughtParts on Order {
    id
    status
    number
    revision
    paymentDeadline
    total {
      ...MoneyParts
    }
    item {
      id
    }
  }
`,
  [MoneyParts],
);

export const TaskParts = graphql(
  `
  fragment TaskParts on OrderTask {
    id
    status
    revision
    quantity
    createdAt
    delayed
    pollAfterMs
    item {
      id
    }
    order {
      ...BoughtParts
    }
    failure {
      ...FailureParts
    }
  }
`,
  [BoughtParts, FailureParts],
);

export const IssuePath = graphql(
  `
  mutation IssuePath($input: IssueSeckillPathInput!) {
    issueSeckillPath(input: $input) {
      path {
        token
        expiresAt
      }
      ticket {
        id
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const PlaceOrder = graphql(
  `
  mutation PlaceOrder($input: PlaceOrderInput!) {
    placeOrder(input: $input) {
      replayed
      orderTask {
        ...TaskParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TaskParts, FailureParts],
);

/** The position in the queue. Not in TaskParts, because the response of placeOrder omits it. */
export const LineParts = graphql(`
  fragment LineParts on OrderTask {
    queue {
      ahead
      estimate
    }
  }
`);

export const Task = graphql(
  `
  query Task($id: ID!) {
    orderTask(id: $id) {
      ...TaskParts
      ...LineParts
    }
  }
`,
  [TaskParts, LineParts],
);

export const TaskStatus = graphql(
  `
  subscription TaskStatus($id: ID!) {
    orderTaskStatus(orderTaskId: $id) {
      kind
      serverTime
      orderTask {
        ...TaskParts
        ...LineParts
      }
    }
  }
`,
  [TaskParts, LineParts],
);
