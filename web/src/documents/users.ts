import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';

export const Users = graphql(`
  query Users($after: String, $search: String, $role: Role, $disabled: Boolean) {
    users(first: 50, after: $after, search: $search, role: $role, disabled: $disabled) {
      edges {
        node {
          id
          account
          displayName
          role
          disabled
          totp
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export const SetUserRole = graphql(
  `
  mutation SetUserRole($input: SetUserRoleInput!) {
    setUserRole(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const DisableUser = graphql(
  `
  mutation DisableUser($input: DisableUserInput!) {
    disableUser(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const EnableUser = graphql(
  `
  mutation EnableUser($input: EnableUserInput!) {
    enableUser(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const EndUserSessions = graphql(
  `
  mutation EndUserSessions($input: EndUserSessionsInput!) {
    endUserSessions(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
