import { graphql } from '../api/tada';

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
