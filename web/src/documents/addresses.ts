import { graphql } from '@seckill/client/tada';
import { FailureParts } from '@seckill/client/documents/failure';
import { OrderParts } from '@seckill/client/documents/order';

export const AddressParts = graphql(`
  fragment AddressParts on Address {
    id
    default
    recipient {
      name
      phone
      country
      region
      city
      street
      postalCode
    }
  }
`);

export const MyAddresses = graphql(
  `
  query MyAddresses {
    myAddresses {
      ...AddressParts
    }
  }
`,
  [AddressParts],
);

export const SaveAddress = graphql(
  `
  mutation SaveAddress($input: SaveAddressInput!) {
    saveAddress(input: $input) {
      address {
        ...AddressParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AddressParts, FailureParts],
);

export const RemoveAddress = graphql(
  `
  mutation RemoveAddress($input: RemoveAddressInput!) {
    removeAddress(input: $input) {
      addresses {
        ...AddressParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [AddressParts, FailureParts],
);

export const CanCorrect = graphql(`
  query CanCorrect($id: ID!) {
    order(id: $id) {
      id
      canCorrectRecipient
    }
  }
`);

export const CorrectRecipient = graphql(
  `
  mutation CorrectRecipient($input: CorrectRecipientInput!) {
    correctRecipient(input: $input) {
      order {
        ...OrderParts
      }
      userErrors {
        ...FailureParts
      }
    }
  }
`,
  [OrderParts, FailureParts],
);
