/**
 * SHA-256 (FIPS 180-4) of short texts, synchronous. WebCrypto is missing on plain
 * http and spends more on its promises than on the hash itself.
 */

const BLOCK = 64;
const K = new Uint32Array(64);
const INITIAL = new Uint32Array(8);

// The constants are the fractions of the cube and square roots of the first primes.
for (let prime = 2, found = 0; found < 64; prime++) {
  let composite = false;
  for (let factor = 2; factor * factor <= prime; factor++) composite ||= prime % factor === 0;
  if (composite) continue;
  if (found < 8) INITIAL[found] = (Math.sqrt(prime) % 1) * 2 ** 32;
  K[found++] = (Math.cbrt(prime) % 1) * 2 ** 32;
}

const words = new Uint32Array(64);
const state = new Uint32Array(8);

/** The digest of ASCII bytes; the returned array is reused by the next call. */
export function sha256(bytes: Uint8Array): Uint32Array {
  const blocks = Math.ceil((bytes.length + 9) / BLOCK);
  const padded = new Uint8Array(blocks * BLOCK);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  state.set(INITIAL);
  for (let block = 0; block < blocks; block++) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(block * BLOCK + i * 4);
    compress();
  }
  return state;
}

function compress(): void {
  const w = words;
  for (let i = 16; i < 64; i++) {
    const a = w[i - 15]!;
    const b = w[i - 2]!;
    const s0 = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3);
    const s1 = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i]! + word) | 0));
}

/** A digest as lower-case hexadecimal. */
export function hex(digest: Uint32Array): string {
  return Array.from(digest, (word) => word.toString(16).padStart(8, '0')).join('');
}
