import { sha256 } from './sha256.ts';

/** How many numbers are tried between two reports. */
export const STEP = 20_000;

/** Parameters of a proof of work: SHA-256 of salt + number must equal the challenge. */
export interface Work {
  salt: string;
  challenge: string;
  maxNumber: number;
}

/** Reads the parameters as the server writes them. */
export function readWork(parameters: string): Work {
  const { salt, challenge, maxNumber } = JSON.parse(parameters);
  return { salt, challenge, maxNumber };
}

/** Searches the number in [from, to); null when it is not there. */
export function search({ salt, challenge }: Work, from: number, to: number): number | null {
  const wanted = Uint32Array.from({ length: 8 }, (_, i) => parseInt(challenge.slice(i * 8, i * 8 + 8), 16));
  const bytes = new Uint8Array(salt.length + 20);
  for (let i = 0; i < salt.length; i++) bytes[i] = salt.charCodeAt(i);
  for (let number = from; number < to; number++) {
    const digits = String(number);
    for (let i = 0; i < digits.length; i++) bytes[salt.length + i] = digits.charCodeAt(i);
    const digest = sha256(bytes.subarray(0, salt.length + digits.length));
    if (digest[0] === wanted[0] && digest.every((word, i) => word === wanted[i])) return number;
  }
  return null;
}
