// What relay-compiler is given: a page of sales that loads more, and a sale that
// refetches itself by its id.
import { graphql } from 'react-relay';

export const query = graphql`
  query SalesQuery($count: Int!) {
    ...Sales_page @arguments(count: $count)
  }
`;

export const page = graphql`
  fragment Sales_page on Query
  @refetchable(queryName: "SalesPageQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" }) {
    sales(first: $count, after: $cursor) @connection(key: "Sales_sales") {
      edges {
        node {
          ...Sales_sale
        }
      }
    }
  }
`;

export const sale = graphql`
  fragment Sales_sale on Sale @refetchable(queryName: "SalesSaleQuery") {
    title
    items {
      goods {
        name
      }
      stock {
        remaining
      }
    }
  }
`;
