import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';
import { AdminSaleParts } from './operator';

export const WithdrawSale = graphql(
  `
  mutation WithdrawSale($input: WithdrawSaleInput!) {
    act: withdrawSale(input: $input) {
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

export const DiscardSale = graphql(
  `
  mutation DiscardSale($input: DiscardSaleInput!) {
    act: discardSale(input: $input) {
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

export const DuplicateSale = graphql(
  `
  mutation DuplicateSale($input: DuplicateSaleInput!) {
    act: duplicateSale(input: $input) {
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

export const ExtendSale = graphql(
  `
  mutation ExtendSale($input: ExtendSaleInput!) {
    act: extendSale(input: $input) {
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

export const DescribeSale = graphql(
  `
  mutation DescribeSale($input: UpdateSaleInput!) {
    act: updateSale(input: $input) {
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
