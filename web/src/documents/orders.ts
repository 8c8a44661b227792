import { graphql } from '../api/tada';
import { MoneyParts } from './buyer';

export const OrderParts = graphql(
  `
  fragment OrderParts on Order {
    id
    number
    status
    revision
    quantity
    createdAt
    paidAt
    paymentDeadline
    serverTime
    unitPrice {
      ...MoneyParts
    }
    total {
      ...MoneyParts
    }
    item {
      id
      goods {
        id
        name
        imageUrl
      }
    }
    sale {
      id
      slug
      title
    }
    availableActions
    recipient {
      name
      phone
      country
      region
      city
      street
      postalCode
    }
    fulfilment {
      state
      carrier
      trackingUrl
    }
    payments {
      id
      failure {
        code
      }
      failureCode
      failureText
    }
    paymentOptions(includeUnavailable: true) {
      unavailableReason
      id
      displayName
      icon
      kind
      device
    }
    timeline {
      at
      status
      note
    }
    refunds {
      id
      status
      reason
      createdAt
      amount {
        ...MoneyParts
      }
    }
  }
`,
  [MoneyParts],
);

export const MyOrders = graphql(
  `
  query MyOrders($after: String) {
    myOrders(first: 20, after: $after) {
      edges {
        node {
          ...OrderParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [OrderParts],
);

export const OneOrder = graphql(
  `
  query OneOrder($id: ID!) {
    order(id: $id) {
      ...OrderParts
    }
  }
`,
  [OrderParts],
);

export const OrderStatus = graphql(
  `
  subscription OrderStatus($id: ID!) {
    orderStatus(orderId: $id) {
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
