import { mutation } from './mutation';
import { graphql } from '@seckill/client/tada';

export const SettingsParts = graphql(`
  fragment SettingsParts on NoticeSettings {
    offered
    reaching
    devices {
      id
      label
      createdAt
      endpoint
    }
    choices {
      kind
      channels
      offered
    }
  }
`);

export const NoticeSettings = graphql(
  `
  query NoticeSettings {
    viewer {
      noticeSettings {
        ...SettingsParts
      }
    }
    serverInfo {
      pushKey
    }
  }
`,
  [SettingsParts],
);

export const UpdateNoticeSettings = mutation('UpdateNoticeSettings', ``);

export const SaleReminder = graphql(`
  query SaleReminder($id: ID!) {
    sale(by: { id: $id }) {
      viewer {
        reminder {
          set
          sentAt
          channels
        }
      }
    }
    viewer {
      contactVerified
      noticeSettings {
        reaching
      }
    }
    serverInfo {
      mail
      pushKey
    }
  }
`);

export const RemindMe = mutation('RemindMe', ``);
export const ForgetReminder = mutation('ForgetReminder', ``);
