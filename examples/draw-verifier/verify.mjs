// Checks the files of draw sales by the rules of docs/fairness.md alone: no code of the
// server is used. The signatures of the beacon are checked by @noble/curves.
//
//   node verify.mjs draw.json…
//   node verify.mjs draw.json --keys jwks.json --root ROOT --entry ENTRY --nonce NONCE
//
// Prints a line for each file, and ends with 1 if one of them is not genuine.
import { createHash, createHmac, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { bls12_381 } from '@noble/curves/bls12-381.js';

const KEY =
  '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451' +
  '0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a';
const DOMAIN = 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_';
const GENESIS = 1692803367;
const PERIOD = 3;
const LEAD = 30;
const REASONS = ['LEFT', 'BLOCKED', 'DELETED', 'NO_ACCESS', 'LIMIT', 'TOO_FEW_LEFT'];
const SIGNED = ['version', 'sale', 'item', 'closedAt', 'count', 'root', 'source', 'round'];
const FIELDS = [...SIGNED, 'rootPublishedAt', 'signedRoot', 'signature', 'value', 'valueSource', 'leaves', 'order', 'offers'];

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const isHash = (text) => typeof text === 'string' && /^[\da-f]{64}$/.test(text);
const isTime = (value) => Number.isSafeInteger(value) && value > 0;

function check(condition, finding) {
  if (!condition) throw new Error(finding);
}

/** The tree hash of RFC 6962. */
function treeHash(leaves) {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0];
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256(Buffer.of(1), treeHash(leaves.slice(0, k)), treeHash(leaves.slice(k)));
}

const checked = new Map(); // rounds by signature: a pairing takes 20 ms

function isSignature(round, signature) {
  const known = `${round} ${signature}`;
  if (!checked.has(known)) {
    const message = Buffer.alloc(8);
    message.writeBigUInt64BE(BigInt(round));
    const bls = bls12_381.shortSignatures;
    try {
      checked.set(known, bls.verify(Buffer.from(signature, 'hex'), bls.hash(sha256(message), DOMAIN), Buffer.from(KEY, 'hex')));
    } catch {
      checked.set(known, false);
    }
  }
  return checked.get(known);
}

function randomness(draw) {
  check(isTime(draw.closedAt) && isTime(draw.rootPublishedAt) && draw.closedAt <= draw.rootPublishedAt, 'the root is older than the closing');
  const { source, round, signature, value, valueSource } = draw;
  check(typeof valueSource === 'string' && (valueSource !== '') === (source === 'operator'), 'the value has no source');
  if (source !== 'drand-quicknet') {
    check(typeof source === 'string' && source && typeof value === 'string' && value && round === 0 && signature === '', 'the source has no value');
    return sha256(value);
  }
  const wait = draw.rootPublishedAt + LEAD - GENESIS;
  check(round === (wait < 0 ? 1 : Math.floor(wait / PERIOD) + 2), 'the round is not the one of the root');
  check(value === '' && typeof signature === 'string' && /^[\da-f]{96}$/.test(signature) && isSignature(round, signature), 'the signature is not that of the round');
  return sha256(Buffer.from(signature, 'hex'));
}

/** Throws what is wrong with a file. */
export function verifyDraw(draw) {
  check(draw !== null && typeof draw === 'object' && Object.keys(draw).sort().join() === [...FIELDS].sort().join(), 'the fields are not those of version 1');
  check(draw.version === 1, 'the version is not 1');
  check(/^sal_[0-7][\da-z]{25}$/.test(draw.sale) && /^itm_[0-7][\da-z]{25}$/.test(draw.item), 'sale and item are no ids');
  check(Array.isArray(draw.leaves) && draw.leaves.every(isHash) && draw.leaves.length === draw.count, 'the leaves are not as many as the count');
  check(draw.leaves.every((leaf, i) => i === 0 || draw.leaves[i - 1] < leaf), 'the leaves are not ascending');
  const leaves = draw.leaves.map((leaf) => Buffer.from(leaf, 'hex'));
  check(treeHash(leaves).toString('hex') === draw.root, 'the root is not that of the leaves');
  const key = randomness(draw);
  const tickets = leaves.map((leaf, index) => ({ index, mac: createHmac('sha256', key).update(leaf).digest() }));
  tickets.sort((a, b) => a.mac.compare(b.mac) || leaves[a.index].compare(leaves[b.index]));
  check(Array.isArray(draw.order) && draw.order.length === tickets.length && tickets.every(({ index }, rank) => draw.order[rank] === index), 'the order does not follow from the random value');
  check(Array.isArray(draw.offers) && draw.offers.length <= draw.count, 'more ranks had their turn than there are');
  for (const [i, { rank, quantity, skipped, ...others }] of draw.offers.entries()) {
    check(rank === i + 1 && Number.isSafeInteger(quantity) && quantity > 0 && Object.keys(others).length === 0, `the turn of rank ${i + 1} is missing`);
    check(skipped == null || skipped === '' || REASONS.includes(skipped), `rank ${rank} was skipped without a reason`);
  }
}

const publicKeys = new Map(); // by the text of a key

function publicKey(jwk) {
  const text = JSON.stringify(jwk);
  if (!publicKeys.has(text)) publicKeys.set(text, createPublicKey({ key: jwk, format: 'jwk' }));
  return publicKeys.get(text);
}

/** Throws if the signed root is not that of the file, signed by a key of a JSON Web Key Set. */
export function verifySignedRoot(draw, { keys }) {
  const [header, claims, signature] = draw.signedRoot.split('.');
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url'));
  const { kid, typ, alg } = read(header);
  const jwk = keys.find((key) => key.kid === kid);
  check(jwk && alg === 'EdDSA' && typ === 'draw-root+jwt', 'the root is signed with no key of the shop');
  check(verify(null, Buffer.from(`${header}.${claims}`), publicKey(jwk), Buffer.from(signature, 'base64url')), 'the root is not signed by the shop');
  const said = read(claims);
  check(said.iat === draw.rootPublishedAt && SIGNED.every((field) => said[field] === draw[field]), 'the signed root says something else');
}

/** The rank of an entry, from 1; 0 = it is not in the draw. */
export function rankOf(draw, entry, nonce) {
  return draw.order.indexOf(draw.leaves.indexOf(sha256(Buffer.of(0), `${entry}\n${nonce}`).toString('hex'))) + 1;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { keys: { type: 'string' }, root: { type: 'string' }, entry: { type: 'string' }, nonce: { type: 'string' } },
});
const keys = values.keys && JSON.parse(readFileSync(values.keys, 'utf8'));
for (const file of positionals) {
  try {
    const draw = JSON.parse(readFileSync(file, 'utf8'));
    verifyDraw(draw);
    if (keys) verifySignedRoot(draw, keys);
    check(!values.root || values.root === draw.root, 'the root is not the one that was noted');
    const rank = values.entry ? rankOf(draw, values.entry, values.nonce) : 0;
    check(!values.entry || rank, 'the entry is not in the draw');
    console.log(`${file}: genuine, ${draw.count} entries${rank ? `, rank ${rank}` : ''}`);
  } catch (error) {
    console.log(`${file}: ${error.message}`);
    process.exitCode = 1;
  }
}
