import { graphql } from '@seckill/client/tada';
import { mutation } from './mutation';
import { OrderParts } from '@seckill/client/documents/order';

export const RequestRefund = mutation('RequestRefund', `order { ...OrderParts }`, [OrderParts]);

export const MyOrderUpdates = graphql(
  `
  subscription MyOrderUpdates {
    myOrderUpdates {
      kind
      serverTime
      order {
        ...OrderParts
      }
    }
  }
`,
  [OrderParts],
);
