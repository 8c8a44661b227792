import { expect, test } from 'vitest';
import { verifyDraw } from '@seckill/client/fairness';

const proof = {
  commitment: '72cd6e8422c407fb6d098690f1130b7ded7ec2f7f5e1d30bd9d521f015363793',
  seed: '01'.repeat(32),
  nonce: '5f2c17a0b4e94d0c',
  number: '3550435389445179',
};

test('a number of the draw follows from commitment, seed and nonce', async () => {
  expect(await verifyDraw(proof)).toBe(true);
  for (const wrong of [{ commitment: '00'.repeat(32) }, { seed: '02'.repeat(32) }, { seed: '01' }, { seed: 'x'.repeat(64) }, { nonce: 'another nonce 16' }, { number: '1' }])
    expect(await verifyDraw({ ...proof, ...wrong }), JSON.stringify(wrong)).toBe(false);
});
