import { createHash, createHmac } from 'node:crypto';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';
import { verifyDrawRecord, type DrawRecord } from '@seckill/client/drawrecord';
import { setLanguage } from '../src/i18n/text';
import { DrawFile, prepare } from '../src/pages/draw-file';

/** Drawn by the server's own code from round 1000 of drand's quicknet. */
const record: DrawRecord = JSON.parse(
  '{"version":1,"sale":"sal_01m8h9jd55fss85hhdgkyx6e95","item":"itm_01m8h9jd55ft4v4etjgj342h04","closedAt":1692806328,"rootPublishedAt":1692806333,"count":5,"root":"b73e67633b251bca88e0e8f076a3f226f5a46df67d786a12b4534f4d6c58cb56","signedRoot":"","source":"drand-quicknet","round":1000,"signature":"b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39","value":"","valueSource":"","leaves":["207155f1313b3d41ba78054a296c555fa7e8e1883e868e342913f2c0e23638af","2883834430ac7b12f0ac8651ff4ccface56cf8977e879b631176b314af8fb082","4985a8cc0cfe02fb706ad2ac63475536e97d76f9bc59c9d9b0ea57ed3a0e4f39","7e3ab960964b479d94d7df9b2ac52692f9ad39c37c8753cb82422bcab568ee43","fd630307aa280490f48b04620442be7a4b987f44426a32c25e3c1203893f14f6"],"order":[4,0,3,1,2],"offers":[{"rank":1,"quantity":1},{"rank":2,"quantity":2,"skipped":"LEFT"},{"rank":3,"quantity":1}]}',
);
const own = { entryId: 'wtl_01m8h9jd55ft6t8tqddpcngprj', nonce: 'a nonce of 16+ chars 2', root: record.root };

test('the file of a draw is repeated in the browser, with the rank of the own entry', async () => {
  expect(await verifyDrawRecord(record, own)).toEqual({ steps: { root: true, round: true, signature: true, order: true, offers: true }, genuine: true, rank: 1 });
  expect((await verifyDrawRecord(record, { ...own, nonce: 'another nonce 16' })).rank).toBeNull();
});

test('a manipulated file fails at the step of its manipulation', async () => {
  const later = 'b33bf3667cbd5a82de3a24b4e0e9fe5513cc1a0e840368c6e31f5fcfa79bea03f73896b25883abf2853d10337fb8fa41';
  const manipulated: [string, Partial<DrawRecord>][] = [
    ['root', { root: '0'.repeat(64) }],
    ['root', { leaves: record.leaves.slice(1), count: 4 }],
    ['root', { leaves: [...record.leaves].reverse() }],
    ['root', { count: 6 }],
    ['root', { version: 2 }],
    ['round', { round: 1001, signature: later }],
    ['round', { rootPublishedAt: record.rootPublishedAt + 60 }],
    ['round', { closedAt: record.rootPublishedAt + 1 }],
    ['round', { value: '6' }],
    ['round', { source: 'dice', value: '6' }],
    ['signature', { signature: later }],
    ['signature', { signature: `9${record.signature.slice(1)}` }],
    ['signature', { signature: '' }],
    ['order', { order: [0, 4, 3, 1, 2] }],
    ['order', { source: 'dice', value: '6', round: 0, signature: '' }],
    ['offers', { offers: record.offers.slice(1) }],
    ['offers', { offers: [{ rank: 1, quantity: 1, skipped: 'SHOP' }] }],
  ];
  for (const [step, change] of manipulated) {
    const check = await verifyDrawRecord({ ...record, ...change });
    expect(Object.entries(check.steps).find(([, right]) => !right)?.[0], JSON.stringify(change)).toBe(step);
    expect(check.genuine).toBe(false);
  }
  expect((await verifyDrawRecord(record, { ...own, root: '0'.repeat(64) })).genuine).toBe(false);
});

afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

test.each([
  ['genuine.json', record, 'status', 'rank 1 of 5'],
  ['false.json', { ...record, order: [0, 4, 3, 1, 2] }, 'alert', 'does not follow from the entries'],
])('the page shows the outcome of %s', async (file, served, role, text) => {
  await setLanguage('en');
  await prepare();
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(served))));
  await act(() => render(<DrawFile file={file} own={own} />, document.body));
  await vi.waitFor(() => expect(document.body.textContent).toContain(text), 30_000);
  expect(document.querySelectorAll(`[role=${role}]`)).toHaveLength(1);
});

test('the page claims nothing about a random value that the shop gave', async () => {
  await setLanguage('en');
  await prepare();
  const value = 'S6BWSKUWRDUQA6P3IDJIDVQBOM';
  const key = createHash('sha256').update(value).digest();
  const number = (leaf: string): string => createHmac('sha256', key).update(Buffer.from(leaf, 'hex')).digest('hex');
  const order = record.leaves.map((_, i) => i).sort((a, b) => (number(record.leaves[a]!) < number(record.leaves[b]!) ? -1 : 1));
  const served = { ...record, source: 'local', value, round: 0, signature: '', order };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(served))));
  await act(() => render(<DrawFile file="local.json" own={null} />, document.body));
  await vi.waitFor(() => expect(document.body.textContent).toContain('consistent'), 30_000);
  expect(document.body.textContent).toContain('Nothing shows that it did not choose it');
  expect(document.body.textContent).not.toMatch(/followed the rules|could not choose/);
});
