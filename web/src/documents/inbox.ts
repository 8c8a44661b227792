import { graphql } from '@seckill/client/tada';

export const Inbox = graphql(`
  query Inbox {
    inbox {
      totalCount
      decidableCount
      counts {
        more
      }
      entries {
        kind
        subjectId
        since
        note
        quantity
        decidable
        sale {
          id
          title
        }
        order {
          id
          number
        }
      }
    }
  }
`);

export const InboxCountNow = graphql(`
  query InboxCountNow {
    inbox {
      totalCount
      decidableCount
    }
  }
`);

export const InboxCount = graphql(`
  subscription InboxCount {
    inboxCount {
      totalCount
      decidableCount
    }
  }
`);
