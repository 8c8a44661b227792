import { graphql } from '../tada.ts';
import { BoughtParts, TaskParts } from './purchase.ts';
import { MoneyParts } from './money.ts';
import { WaitlistParts } from './waitlist.ts';

export const StockParts = graphql(`
  fragment StockParts on Stock {
    level
    remaining
    total
    revision
    updatedAt
  }
`);

export const ItemParts = graphql(
  `
  fragment ItemParts on SaleItem {
    id
    price {
      ...MoneyParts
    }
    goods {
      id
      name
      imageUrl
      imageAlt
      listPrice {
        ...MoneyParts
      }
    }
    stock {
      ...StockParts
    }
  }
`,
  [MoneyParts, StockParts],
);

export const HeadParts = graphql(`
  fragment HeadParts on Sale {
    id
    slug
    title
    phase
    startsAt
    endsAt
    nextTransitionAt
    revision
    mode
  }
`);

export const AccentParts = graphql(`
  fragment AccentParts on Accent {
    color
    light {
      fill
      press
      text
    }
    dark {
      fill
      press
      text
    }
  }
`);

export const CardParts = graphql(
  `
  fragment CardParts on Sale {
    ...HeadParts
    items {
      ...ItemParts
    }
  }
`,
  [HeadParts, ItemParts],
);

/** What all viewers of a sale see alike. The server marshals an event with nothing else once for all of them. */
export const PublicSaleParts = graphql(
  `
  fragment PublicSaleParts on Sale {
    ...HeadParts
    serverTime
    purchaseLimit
    paymentWindowSeconds
    drawOpensAt
    entriesCloseAt
    authorizesEntries
    requiresAddress
    limitBy
    access {
      kind
      name
      from
    }
    rules
    notice
    accent {
      ...AccentParts
    }
    items {
      ...ItemParts
      purchaseLimit
      drawing {
        state
        entries
        roundAt
        recordPath
      }
      goods {
        description
      }
    }
  }
`,
  [HeadParts, AccentParts, ItemParts],
);

export const SaleParts = graphql(
  `
  fragment SaleParts on Sale {
    ...PublicSaleParts
    viewer {
      action
      disabledReason
      access {
        from
        rule {
          kind
          name
        }
      }
      items {
        item {
          id
        }
        remainingLimit
        order {
          ...BoughtParts
        }
        waitlistEntry {
          ...WaitlistParts
        }
      }
      order {
        ...BoughtParts
      }
      orderTask {
        ...TaskParts
      }
      queueTicket {
        id
        item {
          id
        }
      }
      waitlistEntry {
        ...WaitlistParts
      }
    }
  }
`,
  [PublicSaleParts, BoughtParts, TaskParts, WaitlistParts],
);

export const Sales = graphql(
  `
  query Sales($after: String, $search: String) {
    sales(first: 20, after: $after, filter: { search: $search }) {
      edges {
        node {
          ...CardParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [CardParts],
);

export const SaleBySlug = graphql(
  `
  query SaleBySlug($slug: String!) {
    sale(by: { slug: $slug }) {
      ...SaleParts
    }
  }
`,
  [SaleParts],
);

export const OneSale = graphql(
  `
  query OneSale($by: SaleLookup!) {
    sale(by: $by) {
      ...SaleParts
    }
  }
`,
  [SaleParts],
);

export const SaleStatus = graphql(
  `
  subscription SaleStatus($id: ID!) {
    saleStatus(saleId: $id) {
      kind
      serverTime
      sale {
        ...PublicSaleParts
      }
    }
  }
`,
  [PublicSaleParts],
);

export const SaleStock = graphql(
  `
  subscription SaleStock($id: ID!) {
    saleStock(saleId: $id) {
      kind
      items {
        id
        stock {
          ...StockParts
        }
      }
    }
  }
`,
  [StockParts],
);

