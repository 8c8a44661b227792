import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/money';

export const TotalsParts = graphql(
  `
  fragment TotalsParts on MoneyTotals {
    charged {
      ...MoneyParts
    }
    refunded {
      ...MoneyParts
    }
    fees {
      ...MoneyParts
    }
    feesUnknown
    net {
      ...MoneyParts
    }
  }
`,
  [MoneyParts],
);

export const OrderMoney = graphql(
  `
  query OrderMoney($id: ID!) {
    order(by: { id: $id }) {
      id
      number
      canCorrectRecipient
      recipient {
        name
        phone
        country
        region
        city
        street
        postalCode
      }
      moneyTotals {
        ...TotalsParts
      }
      ledger {
        at
        kind
        provider
        transaction
        amount {
          ...MoneyParts
        }
      }
    }
  }
`,
  [TotalsParts, MoneyParts],
);

export const SaleMoney = graphql(
  `
  query SaleMoney($id: ID!) {
    sale(by: { id: $id }) {
      id
      moneyTotals {
        ...TotalsParts
      }
    }
  }
`,
  [TotalsParts],
);
