import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';
import { mutation } from './mutation';
import { MoneyParts } from '@seckill/client/documents/money';
import { AccentParts, HeadParts, ItemParts } from '@seckill/client/documents/sale';
import { OrderParts } from '@seckill/client/documents/order';

export const AdminSaleParts = graphql(
  `
  fragment AdminSaleParts on Sale {
    ...HeadParts
    status
    notice
    preheatAt
    purchaseLimit
    paymentWindowSeconds
    requiresAddress
    limitBy
    access {
      kind
      name
      source
      from
      afterSeconds
      keepUnits
      keepSeconds
      keptUntil
    }
    private
    accessCodes {
      number
      source
      codes
      uses
      expiresAt
      revoked
      revokedCodes
      valid
    }
    mode
    entriesCloseAt
    authorizesEntries
    offerSeconds
    hideExactStock
    requireVerifiedContact
    minimumAccountAge
    rules
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
        source
      }
    }
    switches {
      captchaRequired
      captchaKinds
      permitRatio
      proofOfWorkMax
      inflowPerSecond
      reviewAccounts
      limitBurst
      limitPerSecond
    }
  }
`,
  [HeadParts, AccentParts, ItemParts],
);

/** A row of a list of sales. */
export const SaleRowParts = graphql(`
  fragment SaleRowParts on Sale {
    id
    title
    startsAt
    status
    private
    requireVerifiedContact
    requiresAddress
    items {
      goods {
        id
        name
        imageUrl
      }
      stock {
        remaining
        total
      }
    }
  }
`);

/** A group of sales of the first page. */
export const HomeGroup = graphql(
  `
  fragment HomeGroup on SaleConnection {
    edges {
      node {
        ...SaleRowParts
      }
    }
    pageInfo {
      hasNextPage
    }
  }
`,
  [SaleRowParts],
);

export const LogParts = graphql(`
  fragment LogParts on SaleLogEntry {
    at
    action
    status
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

export const AdminSales = graphql(
  `
  query AdminSales($after: String, $search: String, $statuses: [SaleStatus!]) {
    sales(first: 20, after: $after, filter: { search: $search, statuses: $statuses }, orderBy: { field: CREATED_AT, direction: DESC }) {
      edges {
        node {
          ...SaleRowParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [SaleRowParts],
);

/** The sales of the first page of the admin pages: each group by itself, so that many drafts hide no running sale. */
export const HomeSales = graphql(
  `
  query HomeSales {
    serverInfo {
      mail
      payments
      publicUrl
    }
    running: sales(first: 10, filter: { statuses: [LIVE, PAUSED] }, orderBy: { field: STARTS_AT, direction: ASC }) {
      ...HomeGroup
    }
    review: sales(first: 10, filter: { statuses: [PENDING_APPROVAL] }, orderBy: { field: STARTS_AT, direction: ASC }) {
      ...HomeGroup
    }
    upcoming: sales(first: 10, filter: { statuses: [APPROVED, SCHEDULED, PREHEATED] }, orderBy: { field: STARTS_AT, direction: ASC }) {
      ...HomeGroup
    }
    draft: sales(first: 10, filter: { statuses: [DRAFT, REJECTED] }, orderBy: { field: CREATED_AT, direction: DESC }) {
      ...HomeGroup
    }
  }
`,
  [HomeGroup],
);

export const SearchUsers = graphql(`
  query SearchUsers($text: String!) {
    searchUsers(text: $text) {
      id
      account
      displayName
      role
    }
  }
`);

export const AdminSale = graphql(
  `
  query AdminSale($id: ID!) {
    sale(by: { id: $id }) {
      ...AdminSaleParts
      items {
        goods {
          description
        }
      }
      timeline {
        ...LogParts
      }
    }
  }
`,
  [AdminSaleParts, LogParts],
);

export const GoodsList = graphql(
  `
  query GoodsList($after: String, $search: String) {
    goods(first: 20, after: $after, search: $search) {
      edges {
        node {
          id
          name
          description
          imageUrl
          imageAlt
          listPrice {
            ...MoneyParts
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

export const CreateGoods = mutation('CreateGoods', `goods { id }`);
export const UpdateGoods = mutation('UpdateGoods', `goods { id } intervention { state sale { id } }`);
export const CreateSale = mutation('CreateSale', `sale { ...AdminSaleParts }`, [AdminSaleParts]);
export const UpdateSale = mutation('UpdateSale', `sale { ...AdminSaleParts } intervention { state sale { id } }`, [AdminSaleParts]);

export const SubmitSale = graphql(
  `
  mutation SubmitSale($input: SubmitSaleInput!) {
    act: submitSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const ApproveSale = graphql(
  `
  mutation ApproveSale($input: ApproveSaleInput!) {
    act: approveSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const RejectSale = graphql(
  `
  mutation RejectSale($input: RejectSaleInput!) {
    act: rejectSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const ScheduleSale = graphql(
  `
  mutation ScheduleSale($input: ScheduleSaleInput!) {
    act: scheduleSale(input: $input) {
      intervention {
        state
        sale {
          id
        }
      }
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const PreheatSale = graphql(
  `
  mutation PreheatSale($input: PreheatSaleInput!) {
    act: preheatSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const PauseSale = graphql(
  `
  mutation PauseSale($input: PauseSaleInput!) {
    act: pauseSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const ResumeSale = graphql(
  `
  mutation ResumeSale($input: ResumeSaleInput!) {
    act: resumeSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const EndSale = graphql(
  `
  mutation EndSale($input: EndSaleInput!) {
    act: endSale(input: $input) {
      sale {
        ...AdminSaleParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AdminSaleParts, FailureParts],
);

export const AdminOrders = graphql(
  `
  query AdminOrders($after: String, $filter: OrderFilter, $orderBy: OrderSort) {
    orders(first: 20, after: $after, filter: $filter, orderBy: $orderBy) {
      edges {
        node {
          ...OrderParts
          buyer {
            id
            displayName
            account
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
  [OrderParts],
);

export const DecideRefund = mutation('DecideRefund', `order { ...OrderParts } intervention { state sale { id } }`, [OrderParts]);
