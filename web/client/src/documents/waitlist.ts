import { graphql } from '../tada.ts';
import { FailureParts } from './failure.ts';
import { MoneyParts } from './money.ts';

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

export const AuthorizeEntry = graphql(
  `
  mutation AuthorizeEntry($input: AuthorizeEntryInput!) {
    authorizeEntry(input: $input) {
      payment {
        id
        status
        redirectUrl
        amount {
          ...MoneyParts
        }
        embedded {
          clientSecret
          publishableKey
          scriptUrl
        }
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [MoneyParts, FailureParts],
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
