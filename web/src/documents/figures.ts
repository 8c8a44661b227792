/** What the dashboard of a running sale asks for and follows. */
import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/money';

export const FigureParts = graphql(
  `
  fragment FigureParts on SaleStats {
    at
    conserved
    countedSince
    totalUnits
    remainingUnits
    pendingUnits
    unpaidUnits
    offeredUnits
    waitingBuyers
    paidUnits
    items {
      itemId
      totalUnits
      unpaidUnits
      paidUnits
      offeredUnits
      waitingBuyers
    }
    captchas
    paths
    requests
    accepted
    orders
    paidOrders
    expiredOrders
    refundedOrders
    p99Ms
    queueDepth
    queueAgeSeconds
    requestsPerSecond
    ordersPerSecond
    netValue {
      ...MoneyParts
    }
    gate {
      stage
      rejections {
        code
        count
      }
    }
  }
`,
  [MoneyParts],
);

export const Figures = graphql(
  `
  query Figures($id: ID!) {
    sale(by: { id: $id }) {
      id
      saleStats {
        ...FigureParts
        series {
          at
          requests
          orders
          remainingUnits
        }
      }
    }
  }
`,
  [FigureParts],
);

export const PulseOf = graphql(
  `
  query PulseOf($id: ID!, $today: DateTime!) {
    sale(by: { id: $id }) {
      id
      orderTotals(since: $today) {
        orders
        netValue {
          ...MoneyParts
        }
      }
      saleStats {
        conserved
        remainingUnits
        recentOrders
        queueAgeSeconds
      }
    }
  }
`,
  [MoneyParts],
);

export const FiguresLive = graphql(
  `
  subscription FiguresLive($id: ID!) {
    saleStats(saleId: $id) {
      kind
      serverTime
      saleStats {
        ...FigureParts
      }
    }
  }
`,
  [FigureParts],
);

export const Feed = graphql(`
  subscription Feed($id: ID!, $after: String) {
    saleFeed(saleId: $id, after: $after) {
      kind
      serverTime
      cursor
      message
      order {
        id
        number
      }
    }
  }
`);
