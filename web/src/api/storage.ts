import { kept } from '@seckill/client/storage';

/** Permanent, shared by all tabs. */
export const persistentStore = kept(() => localStorage);
/** Per tab, across reloads. */
export const tabStore = kept(() => sessionStorage);
