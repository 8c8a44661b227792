import { graphql } from '@seckill/client/tada';
import { OrderParts } from '@seckill/client/documents/order';

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
