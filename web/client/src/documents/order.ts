import { graphql } from '../tada.ts';
import { MoneyParts } from './money.ts';
import { FailureParts } from './failure.ts';

export const OrderParts = graphql(
  `
  fragment OrderParts on Order {
    id
    number
    status
    revision
    quantity
    refundedQuantity
    refundedAmount {
      ...MoneyParts
    }
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
        imageAlt
      }
    }
    sale {
      id
      slug
      title
    }
    availableActions
    review {
      held
      until
      text
      answer
    }
    receipt {
      number
      seller
      sellerDetails
      tax {
        name
        rate
        amount {
          ...MoneyParts
        }
      }
    }
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
      status
      option {
        displayName
      }
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
      quantity
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

export const OneOrder = graphql(
  `
  query OneOrder($id: ID!) {
    order(by: { id: $id }) {
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

export const PayOrder = graphql(
  `
  mutation PayOrder($input: PayOrderInput!) {
    payOrder(input: $input) {
      payment {
        id
        status
        qrCode
        redirectUrl
        embedded {
          clientSecret
          publishableKey
          scriptUrl
        }
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
