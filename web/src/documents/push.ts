import { mutation } from '@seckill/client/documents/failure';

export const SubscribePush = mutation('SubscribePush', ``);
export const UnsubscribePush = mutation('UnsubscribePush', ``);
