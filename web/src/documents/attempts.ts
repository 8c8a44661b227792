import { graphql } from '@seckill/client/tada';

export const MyAttempts = graphql(`
  query MyAttempts($id: ID!) {
    myAttempts(saleId: $id) {
      total
      attempts {
        stage
        code
        message
        times
        lastAt
        unitsLeft
        ahead
        item {
          id
        }
      }
    }
  }
`);
