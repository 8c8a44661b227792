import { graphql } from '@seckill/client/tada';

/** What was approved of a sale, beside what is now. */
export const Approved = graphql(`
  query Approved($id: ID!) {
    sale(by: { id: $id }) {
      approved {
        at
        by {
          displayName
        }
        terms {
          name
          kind
          approved
          now
          changed
          goods {
            id
            name
          }
        }
      }
    }
  }
`);
