import { mutation } from './mutation';

export const SubscribePush = mutation('SubscribePush', ``);
export const UnsubscribePush = mutation('UnsubscribePush', ``);
