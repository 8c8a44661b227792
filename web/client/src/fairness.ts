/** A number in the draw, with what it follows from: SaleItem.draw and QueueTicket.draw. */
export interface DrawProof {
  /** `SaleItem.draw.commitment`, as it was before the opening. */
  commitment: string;
  /** `SaleItem.draw.seed`, in hexadecimal. */
  seed: string;
  /** The nonce that this client sent; see Place. */
  nonce: string;
  /** `QueueTicket.draw.number`. */
  number: string;
}

/**
 * Whether the shop committed to the seed and the number follows from seed and nonce. Needs
 * a secure context (https or localhost), as all of crypto.subtle.
 */
export async function verifyDraw({ commitment, seed, nonce, number }: DrawProof): Promise<boolean> {
  const pairs = seed.match(/[\da-f]{2}/gi) ?? [];
  if (pairs.length !== 32 || seed.length !== 64) return false;
  const secret = new Uint8Array(pairs.map((pair) => parseInt(pair, 16)));
  const digest = hex(await crypto.subtle.digest('SHA-256', secret));
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = hex(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(nonce)));
  return digest === commitment.toLowerCase() && (BigInt(`0x${mac.slice(0, 13)}`) + 1n).toString() === number;
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
