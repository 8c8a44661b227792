import { graphql } from '../tada.ts';
import { FailureParts } from './failure.ts';

export const TicketParts = graphql(`
  fragment TicketParts on QueueTicket {
    id
    status
    endReason
    item {
      id
    }
    path {
      token
      expiresAt
    }
    position {
      ahead
      wait {
        fromSeconds
        toSeconds
      }
      chancePercent
      updatedAt
    }
  }
`);

export const EnterQueue = graphql(
  `
  mutation EnterQueue($input: EnterQueueInput!) {
    enterQueue(input: $input) {
      ticket {
        ...TicketParts
        item {
          draw {
            commitment
          }
        }
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TicketParts, FailureParts],
);

export const LeaveQueue = graphql(
  `
  mutation LeaveQueue($input: LeaveQueueInput!) {
    leaveQueue(input: $input) {
      ticket {
        ...TicketParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TicketParts, FailureParts],
);

export const QueuePlace = graphql(
  `
  subscription QueuePlace($id: ID!) {
    queuePosition(ticketId: $id) {
      kind
      serverTime
      ticket {
        ...TicketParts
      }
    }
  }
`,
  [TicketParts],
);

export const Ticket = graphql(
  `
  query Ticket($id: ID!) {
    node(id: $id) {
      __typename
      ... on QueueTicket {
        ...TicketParts
      }
    }
  }
`,
  [TicketParts],
);
