// The operations of a purchase for relay-compiler, which writes __generated__/.
import { graphql } from 'relay-runtime';

export const login = graphql`
  mutation BuyLoginMutation($input: LoginInput!) {
    login(input: $input) { tokens { accessToken } userErrors { code message } }
  }
`;

export const sales = graphql`
  query BuySalesQuery {
    sales(first: 20) { edges { node { id title phase items { id goods { name } } } } }
  }
`;

export const createCaptcha = graphql`
  mutation BuyCreateCaptchaMutation($input: CreateCaptchaInput!) {
    createCaptcha(input: $input) { challenge { id parameters } userErrors { code message } }
  }
`;

export const issuePath = graphql`
  mutation BuyIssuePathMutation($input: IssueSeckillPathInput!) {
    issueSeckillPath(input: $input) { path { token } ticket { id } userErrors { code message } }
  }
`;

export const placeOrder = graphql`
  mutation BuyPlaceOrderMutation($input: PlaceOrderInput!) {
    placeOrder(input: $input) { orderTask { id status } userErrors { code message } }
  }
`;

export const orderTaskStatus = graphql`
  subscription BuyOrderTaskStatusSubscription($id: ID!) {
    orderTaskStatus(orderTaskId: $id) {
      kind
      orderTask { id status revision order { number status } failure { code } }
    }
  }
`;
