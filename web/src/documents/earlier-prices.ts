import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/money';

/** Prices of the latest sales that were approved, for warnings beside a new price. */
export const EarlierPrices = graphql(
  `
  query EarlierPrices {
    sales(first: 20, filter: { statuses: [SCHEDULED, PREHEATED, LIVE, PAUSED, ENDED] }, orderBy: { field: CREATED_AT, direction: DESC }) {
      nodes {
        id
        items {
          goods {
            id
          }
          price {
            ...MoneyParts
          }
        }
      }
    }
  }
`,
  [MoneyParts],
);
