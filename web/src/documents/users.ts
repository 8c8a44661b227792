import { graphql } from '@seckill/client/tada';
import { mutation } from './mutation';

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

export const SetUserRole = mutation('SetUserRole', ``);
export const DisableUser = mutation('DisableUser', ``);
export const EnableUser = mutation('EnableUser', ``);
export const EndUserSessions = mutation('EndUserSessions', ``);
