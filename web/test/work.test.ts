import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hex, sha256 } from '@seckill/client/captcha/sha256';
import { readWork, search } from '@seckill/client/captcha/work';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const reference = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('SHA-256', () => {
  test('agrees with the library around the borders of a block', () => {
    for (const length of [0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000]) {
      const text = 'a'.repeat(length);
      expect(hex(sha256(bytes(text))), `${length} bytes`).toBe(reference(text));
    }
  });
});

describe('the proof of work', () => {
  const salt = '5c1f0a9b77?expires=1795176000';
  const work = { salt, challenge: reference(`${salt}31337`), maxNumber: 50_000 };

  test('finds the number', () => expect(search(work, 0, 50_001)).toBe(31_337));
  test('looks in the given range only', () => {
    expect(search(work, 0, 31_337)).toBeNull();
    expect(search(work, 31_338, 50_001)).toBeNull();
  });
  test('looks as far as the challenge says, however hard it is', () => {
    const harder = { salt, challenge: reference(`${salt}179999`), maxNumber: 800_000 };
    expect(search(readWork(JSON.stringify(harder)), 160_000, harder.maxNumber + 1)).toBe(179_999);
  });
  test('reads the server’s parameters', () => {
    const parameters = JSON.stringify({ algorithm: 'SHA-256', ...work, signature: 's' });
    expect(readWork(parameters)).toEqual(work);
  });
});
