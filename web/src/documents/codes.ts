import { mutation } from './mutation';

export const CreateAccessCodes = mutation('CreateAccessCodes', `batch { number }`);

export const RevokeAccessCodes = mutation('RevokeAccessCodes', `batch { number }`);
