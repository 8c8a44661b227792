import { graphql } from '@seckill/client/tada';

export const TicketDraw = graphql(`
  query TicketDraw($id: ID!) {
    node(id: $id) {
      __typename
      ... on QueueTicket {
        draw {
          nonce
          number
        }
        item {
          draw {
            commitment
            seed
          }
        }
      }
    }
  }
`);

export const DrawNonce = graphql(`
  query DrawNonce($id: ID!) {
    node(id: $id) {
      __typename
      ... on WaitlistEntry {
        nonce
      }
    }
  }
`);
