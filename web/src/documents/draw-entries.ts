import { graphql } from '@seckill/client/tada';

export const DrawEntries = graphql(`
  query DrawEntries($itemId: ID!) {
    drawEntries(itemId: $itemId) {
      seconds
      points {
        at
        entries
      }
    }
  }
`);
