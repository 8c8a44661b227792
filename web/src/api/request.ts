import { toFault } from './fault';
import { post } from './post';
import { bearer, refused } from './session';
import type { Doc } from './tada';

/**
 * Sends one operation as the signed-in user. An expired token is
 * refreshed and the operation sent once more: it was refused before anything
 * was done. Throws a Fault.
 */
export async function request<R, V>(doc: Doc<R, V>, variables: V, signal?: AbortSignal): Promise<R> {
  const token = await bearer();
  try {
    return await post(doc, variables, token, signal);
  } catch (thrown) {
    if (!token || toFault(thrown).code !== 'UNAUTHENTICATED') throw thrown;
    refused(token);
    return post(doc, variables, await bearer(), signal);
  }
}
