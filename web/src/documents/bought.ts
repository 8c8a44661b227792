import { graphql } from '@seckill/client/tada';
import { mutation } from './mutation';

/** The sale alone: its clusters are read page by page, each by an aggregate over its orders. */
export const ClusteredSale = graphql(`
  query ClusteredSale($id: ID!) {
    sale(by: { id: $id }) {
      id
      title
    }
  }
`);

export const SaleClusters = graphql(`
  query SaleClusters($id: ID!, $after: String) {
    sale(by: { id: $id }) {
      id
      clusters(first: 20, after: $after) {
        edges {
          node {
            accounts
            firstAfterOpeningMs
            heldOrders
            kind
            label
            lastAfterOpeningMs
            orders
            units
            unpaidOrders
          }
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`);

export const HoldOrders = mutation('HoldOrders', `held left`);
export const ReleaseOrder = mutation('ReleaseOrder', `order { id }`);
