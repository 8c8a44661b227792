import { graphql } from '@seckill/client/tada';

export const Requirements = graphql(`
  query Requirements($id: ID!) {
    sale(by: { id: $id }) {
      requireVerifiedContact
      minimumAccountAge
      viewer {
        needsVerifiedContact
        accountTooNew
      }
    }
  }
`);
