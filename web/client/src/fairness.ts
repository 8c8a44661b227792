/** A number in the draw with the values it is derived from: SaleItem.draw and QueueTicket.draw. */
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

/** The result of checkDraw. */
export interface DrawCheck {
  /** Whether the commitment is the SHA-256 hash of the seed. */
  committed: boolean;
  /** The computed number; null if the seed is malformed. */
  number: string | null;
}

/** Whether the shop committed to the seed and the number follows from seed and nonce. */
export async function verifyDraw(proof: DrawProof): Promise<boolean> {
  const check = await checkDraw(proof);
  return check.committed && check.number === proof.number;
}

/** Computes what verifyDraw compares. Needs a secure context (https or localhost), as all of crypto.subtle. */
export async function checkDraw({ commitment, seed, nonce }: Omit<DrawProof, 'number'>): Promise<DrawCheck> {
  const pairs = seed.match(/[\da-f]{2}/gi) ?? [];
  if (pairs.length !== 32 || seed.length !== 64) return { committed: false, number: null };
  const secret = new Uint8Array(pairs.map((pair) => parseInt(pair, 16)));
  const digest = hex(await crypto.subtle.digest('SHA-256', secret));
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = hex(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(nonce)));
  return { committed: digest === commitment.toLowerCase(), number: (BigInt(`0x${mac.slice(0, 13)}`) + 1n).toString() };
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
