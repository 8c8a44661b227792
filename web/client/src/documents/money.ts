import { graphql } from '../tada.ts';

export const MoneyParts = graphql(`
  fragment MoneyParts on Money {
    amount
    currencyCode
  }
`);
