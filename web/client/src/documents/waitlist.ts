import { graphql } from '../tada.ts';
import { FailureParts } from './failure.ts';

export const WaitlistParts = graphql(`
  fragment WaitlistParts on WaitlistEntry {
    id
    status
    ahead
    offerExpiresAt
    quantity
    rank
    card
    item {
      id
    }
  }
`);

export const JoinWaitlist = graphql(
  `
  mutation JoinWaitlist($input: JoinWaitlistInput!) {
    joinWaitlist(input: $input) {
      waitlistEntry {
        ...WaitlistParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [WaitlistParts, FailureParts],
);

export const EnterDraw = graphql(
  `
  mutation EnterDraw($input: EnterDrawInput!) {
    enterDraw(input: $input) {
      waitlistEntry {
        ...WaitlistParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [WaitlistParts, FailureParts],
);

export const LeaveWaitlist = graphql(
  `
  mutation LeaveWaitlist($input: LeaveWaitlistInput!) {
    leaveWaitlist(input: $input) {
      waitlistEntry {
        ...WaitlistParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [WaitlistParts, FailureParts],
);
