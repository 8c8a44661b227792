import { FailureParts } from '@seckill/client/documents/failure';
import { graphql } from '@seckill/client/tada';

export const PersonParts = graphql(`
  fragment PersonParts on User {
    id
    displayName
    account
    role
  }
`);

export const TokenParts = graphql(`
  fragment TokenParts on AuthTokens {
    accessToken
    accessTokenExpiresAt
  }
`);

export const Viewer = graphql(
  `
  query Viewer {
    viewer {
      ...PersonParts
    }
  }
`,
  [PersonParts],
);

export const Login = graphql(
  `
  mutation Login($input: LoginInput!) {
    login(input: $input) {
      tokens {
        ...TokenParts
      }
      user {
        ...PersonParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TokenParts, PersonParts, FailureParts],
);

export const Register = graphql(
  `
  mutation Register($input: RegisterInput!) {
    register(input: $input) {
      tokens {
        ...TokenParts
      }
      user {
        ...PersonParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TokenParts, PersonParts, FailureParts],
);

export const SignInProviders = graphql(`
  query SignInProviders {
    signInProviders {
      title
      url
    }
    serverInfo {
      mail
      phoneCountry
    }
  }
`);

export const RefreshSession = graphql(
  `
  mutation RefreshSession($input: RefreshSessionInput!) {
    refreshSession(input: $input) {
      tokens {
        ...TokenParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [TokenParts, FailureParts],
);

export const Logout = graphql(
  `
  mutation Logout($input: LogoutInput!) {
    logout(input: $input) {
      endedSessions
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const Account = graphql(`
  query Account {
    viewer {
      id
      displayName
      account
      role
      grantedRole
      totp
      contactVerified
    }
    serverInfo {
      mail
    }
  }
`);

export const ChangePassword = graphql(
  `
  mutation ChangePassword($input: ChangePasswordInput!) {
    changePassword(input: $input) {
      endedSessions
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const StartTotp = graphql(
  `
  mutation StartTotp($input: StartTotpInput!) {
    startTotp(input: $input) {
      secret
      uri
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ConfirmTotp = graphql(
  `
  mutation ConfirmTotp($input: ConfirmTotpInput!) {
    confirmTotp(input: $input) {
      recoveryCodes
      endedSessions
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const RemoveTotp = graphql(
  `
  mutation RemoveTotp($input: RemoveTotpInput!) {
    removeTotp(input: $input) {
      endedSessions
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const RequestEmail = graphql(
  `
  mutation RequestEmail($input: RequestEmailInput!) {
    requestEmail(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ConfirmEmail = graphql(
  `
  mutation ConfirmEmail($input: ConfirmEmailInput!) {
    confirmEmail(input: $input) {
      email
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const RequestPasswordReset = graphql(
  `
  mutation RequestPasswordReset($input: RequestPasswordResetInput!) {
    requestPasswordReset(input: $input) {
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ResetPassword = graphql(
  `
  mutation ResetPassword($input: ResetPasswordInput!) {
    resetPassword(input: $input) {
      endedSessions
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const ExportPersonalData = graphql(
  `
  mutation ExportPersonalData($input: ExportPersonalDataInput!) {
    exportPersonalData(input: $input) {
      document
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);

export const DeleteAccount = graphql(
  `
  mutation DeleteAccount($input: DeleteAccountInput!) {
    deleteAccount(input: $input) {
      deleted
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [FailureParts],
);
