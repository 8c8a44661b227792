import { graphql } from '../api/tada';
import { FailureParts } from './account';

export const MoneyParts = graphql(`
  fragment MoneyParts on Money {
    amount
    currencyCode
  }
`);

export const StockParts = graphql(`
  fragment StockParts on Stock {
    level
    remaining
    total
    revision
    updatedAt
  }
`);

export const ItemParts = graphql(
  `
  fragment ItemParts on SaleItem {
    id
    price {
      ...MoneyParts
    }
    goods {
      id
      name
      imageUrl
      listPrice {
        ...MoneyParts
      }
    }
    stock {
      ...StockParts
    }
  }
`,
  [MoneyParts, StockParts],
);

export const HeadParts = graphql(`
  fragment HeadParts on Sale {
    id
    slug
    title
    phase
    startsAt
    endsAt
    nextTransitionAt
    revision
  }
`);

export const CardParts = graphql(
  `
  fragment CardParts on Sale {
    ...HeadParts
    items {
      ...ItemParts
    }
  }
`,
  [HeadParts, ItemParts],
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
      id
      status
      number
    }
    failure {
      ...FailureParts
    }
  }
`,
  [FailureParts],
);

export const SaleParts = graphql(
  `
  fragment SaleParts on Sale {
    ...HeadParts
    purchaseLimit
    paymentWindowSeconds
    requiresAddress
    rules
    notice
    items {
      ...ItemParts
      purchaseLimit
      goods {
        description
      }
    }
    viewer {
      action
      disabledReason
      items {
        item {
          id
        }
        remainingLimit
        order {
          id
          status
        }
      }
      order {
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
      orderTask {
        ...TaskParts
      }
      queueTicket {
        id
        item {
          id
        }
      }
      waitlistEntry {
        id
        status
        ahead
        offerExpiresAt
        item {
          id
        }
      }
    }
  }
`,
  [HeadParts, ItemParts, MoneyParts, TaskParts],
);

export const Sales = graphql(
  `
  query Sales($after: String, $search: String) {
    sales(first: 20, after: $after, filter: { search: $search }) {
      edges {
        node {
          ...CardParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [CardParts],
);

export const SaleBySlug = graphql(
  `
  query SaleBySlug($slug: String!) {
    sale(by: { slug: $slug }) {
      ...SaleParts
    }
  }
`,
  [SaleParts],
);

export const SaleStatus = graphql(
  `
  subscription SaleStatus($id: ID!) {
    saleStatus(saleId: $id) {
      kind
      serverTime
      sale {
        ...SaleParts
      }
    }
  }
`,
  [SaleParts],
);

export const SaleStock = graphql(
  `
  subscription SaleStock($id: ID!) {
    saleStock(saleId: $id) {
      kind
      items {
        id
        stock {
          ...StockParts
        }
      }
    }
  }
`,
  [StockParts],
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

/** The place in the line of orders: apart, because the answer to placeOrder does without it. */
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
