import { kept } from '@seckill/client/storage';

/** Permanent, shared by all tabs. */
export const forGood = kept(() => localStorage);
/** Per tab, across reloads. */
export const forTab = kept(() => sessionStorage);
