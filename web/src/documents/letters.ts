import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';
import { MoneyParts } from '@seckill/client/documents/money';

export const LetterParts = graphql(`
  fragment LetterParts on DeadLetter {
    id
    reason
    stream
    attempts
    deliveries
    setAsideAt
    orderTask {
      id
      status
    }
  }
`);

export const SetAside = graphql(
  `
  query SetAside {
    letters: deadLetters(first: 1) {
      totalCount
    }
    held: heldPayments(first: 1) {
      totalCount
    }
    acts: deadLetterActs(first: 1) {
      totalCount
    }
  }
`,
);

export const Letters = graphql(
  `
  query Letters($after: String) {
    letters: deadLetters(first: 50, after: $after) {
      edges {
        node {
          ...LetterParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [LetterParts],
);

export const HeldPayments = graphql(
  `
  query HeldPayments($after: String) {
    held: heldPayments(first: 50, after: $after) {
      edges {
        node {
          id
          at
          provider
          transaction
          reason
          amount {
            ...MoneyParts
          }
          order {
            id
            number
          }
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [MoneyParts],
);

export const LetterActs = graphql(`
  query LetterActs($after: String) {
    acts: deadLetterActs(first: 50, after: $after) {
      edges {
        node {
          letterId
          kind
          at
          note
          reason
          actor {
            displayName
          }
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export const Letter = graphql(`
  query Letter($id: ID!) {
    deadLetter(id: $id) {
      id
      fields {
        name
        value
      }
    }
  }
`);

export const ReplayLetter = graphql(
  `
  mutation ReplayLetter($input: ReplayDeadLetterInput!) {
    act: replayDeadLetter(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ReplayLetters = graphql(
  `
  mutation ReplayLetters($input: ReplayDeadLettersInput!) {
    act: replayDeadLetters(input: $input) {
      replayed
      refused
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const DropLetter = graphql(
  `
  mutation DropLetter($input: DropDeadLetterInput!) {
    act: dropDeadLetter(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ReturnHeld = graphql(
  `
  mutation ReturnHeld($input: ReturnHeldPaymentInput!) {
    act: returnHeldPayment(input: $input) {
      intervention {
        state
        sale {
          id
        }
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const SettleHeld = graphql(
  `
  mutation SettleHeld($input: SettleHeldPaymentInput!) {
    act: settleHeldPayment(input: $input) {
      intervention {
        state
        sale {
          id
        }
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
