import { mutation } from './mutation';
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

export const Login = mutation('Login', `tokens { ...TokenParts } user { ...PersonParts }`, [TokenParts, PersonParts]);
export const Register = mutation('Register', `tokens { ...TokenParts } user { ...PersonParts }`, [TokenParts, PersonParts]);

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

export const RefreshSession = mutation('RefreshSession', `tokens { ...TokenParts }`, [TokenParts]);
export const Logout = mutation('Logout', `endedSessions`);

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

export const ChangePassword = mutation('ChangePassword', `endedSessions`);
export const StartTotp = mutation('StartTotp', `secret uri`);
export const ConfirmTotp = mutation('ConfirmTotp', `recoveryCodes endedSessions`);
export const RemoveTotp = mutation('RemoveTotp', `endedSessions`);
export const RequestEmail = mutation('RequestEmail', ``);
export const ConfirmEmail = mutation('ConfirmEmail', `email`);
export const RequestPasswordReset = mutation('RequestPasswordReset', ``);
export const ResetPassword = mutation('ResetPassword', `endedSessions`);
export const ExportPersonalData = mutation('ExportPersonalData', `document`);
export const DeleteAccount = mutation('DeleteAccount', `deleted`);
