import { mutation } from './mutation';

export const RedeemAccessCode = mutation('RedeemAccessCode', `sale { id }`);
