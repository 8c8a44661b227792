import { graphql } from '@seckill/client/tada';

export const GoodsLogParts = graphql(`
  fragment GoodsLogParts on GoodsLogEntry {
    at
    action
    note
    changes {
      name
      kind
      from
      fromKnown
      to
    }
    actor {
      id
      displayName
    }
  }
`);

export const GoodsLog = graphql(
  `
  query GoodsLog($id: ID!) {
    node(id: $id) {
      __typename
      ... on Goods {
        id
        timeline {
          ...GoodsLogParts
        }
      }
    }
  }
`,
  [GoodsLogParts],
);
