import { graphql } from '@seckill/client/tada';
import { MoneyParts } from '@seckill/client/documents/money';
import { mutation } from './mutation';
import { AdminSaleParts } from './operator';

export const InterventionParts = graphql(
  `
  fragment InterventionParts on Intervention {
    id
    kind
    state
    units
    note
    decision
    createdAt
    endsAt
    changes {
      name
      kind
      from
      fromKnown
      to
    }
    amount {
      ...MoneyParts
    }
    goods {
      id
      name
    }
    requestedBy {
      id
      displayName
    }
    decidedBy {
      id
      displayName
    }
    sale {
      id
      title
    }
    item {
      id
      goods {
        name
      }
    }
    order {
      id
      number
      quantity
    }
  }
`,
  [MoneyParts],
);

export const Interventions = graphql(
  `
  query Interventions($saleId: ID, $after: String) {
    interventions: interventions(first: 50, after: $after, filter: { saleId: $saleId }) {
      edges {
        node {
          ...InterventionParts
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`,
  [InterventionParts],
);

/** The acts of two kinds that wait for a second person. */
export const AwaitingActs = graphql(
  `
  query AwaitingActs($one: InterventionKind!, $other: InterventionKind!) {
    one: interventions(first: 20, filter: { kind: $one, states: [REQUESTED] }) {
      edges {
        node {
          ...InterventionParts
        }
      }
    }
    other: interventions(first: 20, filter: { kind: $other, states: [REQUESTED] }) {
      edges {
        node {
          ...InterventionParts
        }
      }
    }
  }
`,
  [InterventionParts],
);

export const AdjustStock = mutation('AdjustStock', `intervention { ...InterventionParts }`, [InterventionParts]);
export const VoidOrder = mutation('VoidOrder', `intervention { ...InterventionParts }`, [InterventionParts]);
export const EnterDrawValue = mutation('EnterDrawValue', `intervention { ...InterventionParts }`, [InterventionParts]);
export const ExpireOrder = mutation('ExpireOrder', `order { id status }`);
export const DecideIntervention = mutation('DecideIntervention', `intervention { ...InterventionParts }`, [InterventionParts]);
export const SetSaleSwitches = mutation('SetSaleSwitches', `sale { ...AdminSaleParts } intervention { state sale { id } }`, [AdminSaleParts]);

export const Report = graphql(`
  query Report($saleId: ID!, $compareTo: ID, $timeZone: String) {
    saleReport(saleId: $saleId, compareTo: $compareTo) {
      conserved
      final
      findings
      html(timeZone: $timeZone)
    }
  }
`);

/** What the tools of a report need of its sale. */
export const ReportedSale = graphql(`
  query ReportedSale($saleId: ID!) {
    sale(by: { id: $saleId }) {
      slug
      startsAt
    }
  }
`);

/** The sales that a report can be compared with, the latest first. */
export const EarlierSales = graphql(`
  query EarlierSales($before: DateTime!, $search: String) {
    sales(first: 50, filter: { statuses: [ENDED], startsBefore: $before, search: $search }, orderBy: { field: STARTS_AT, direction: DESC }) {
      edges {
        node {
          id
          title
          startsAt
        }
      }
      pageInfo {
        hasNextPage
      }
    }
  }
`);
