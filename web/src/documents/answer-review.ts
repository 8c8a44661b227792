import { OrderParts } from '@seckill/client/documents/order';
import { mutation } from './mutation';

export const AnswerReview = mutation('AnswerReview', `order { ...OrderParts }`, [OrderParts]);
