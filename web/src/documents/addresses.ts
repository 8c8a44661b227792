import { graphql } from '@seckill/client/tada';
import { mutation } from './mutation';
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

export const SaveAddress = mutation('SaveAddress', `address { ...AddressParts }`, [AddressParts]);
export const RemoveAddress = mutation('RemoveAddress', `addresses { ...AddressParts }`, [AddressParts]);

export const CanCorrect = graphql(`
  query CanCorrect($id: ID!) {
    order(by: { id: $id }) {
      id
      canCorrectRecipient
    }
  }
`);

export const CorrectRecipient = mutation('CorrectRecipient', `order { ...OrderParts }`, [OrderParts]);
