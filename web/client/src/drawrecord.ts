/** The published file of a draw sale, by version 1 of the rules in docs/fairness.md. */
export interface DrawRecord {
  version: number;
  sale: string;
  item: string;
  /** In Unix seconds, as rootPublishedAt. */
  closedAt: number;
  rootPublishedAt: number;
  count: number;
  root: string;
  signedRoot: string;
  source: string;
  round: number;
  signature: string;
  value: string;
  valueSource: string;
  leaves: string[];
  order: number[];
  offers: { rank: number; quantity: number; skipped?: string }[];
}

/** What a buyer kept: the entry with its nonce, and the root as it was noted before the round. */
export interface OwnEntry {
  entryId: string;
  nonce: string;
  root?: string;
}

/** Steps of the check, in the order of the rules. */
export const DRAW_STEPS = ['root', 'round', 'signature', 'order', 'offers'] as const;

/** The result of verifyDrawRecord. A step is checked only if those before it hold. */
export interface DrawRecordCheck {
  steps: Record<(typeof DRAW_STEPS)[number], boolean>;
  /** Whether all steps hold. */
  genuine: boolean;
  /** The rank of the own entry, from 1; null if the draw does not have it. */
  rank: number | null;
}

const KEY =
  '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451' +
  '0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a';
const DOMAIN = 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_';
const GENESIS = 1692803367;
const PERIOD = 3;
const LEAD = 30;
const REASONS = new Set(['LEFT', 'BLOCKED', 'DELETED', 'NO_ACCESS', 'LIMIT', 'TOO_FEW_LEFT']);
/** After so many hashes the page may answer its user. */
const PAUSE_EVERY = 20_000;

/**
 * Repeats the draw of a file: a million entries take some seconds. The curves for the
 * signature of the beacon are loaded only here. It does not check who signed the root:
 * compare `root` with the one that was noted before the round.
 */
export async function verifyDrawRecord(record: DrawRecord, own?: OwnEntry): Promise<DrawRecordCheck> {
  const [{ sha256 }, { hmac }, { bls12_381 }] = await Promise.all([import('@noble/hashes/sha2.js'), import('@noble/hashes/hmac.js'), import('@noble/curves/bls12-381.js')]);
  const text = new TextEncoder();

  /** The tree hash of RFC 6962: the roots of full subtrees are joined as soon as there are two of a size. */
  async function treeHash(leaves: readonly Uint8Array[]): Promise<Uint8Array> {
    const join = (left: Uint8Array, right: Uint8Array) => sha256(Uint8Array.of(1, ...left, ...right));
    const full: { height: number; hash: Uint8Array }[] = [];
    for (const [i, leaf] of leaves.entries()) {
      let top = { height: 0, hash: leaf };
      for (let last = full.at(-1); last?.height === top.height; last = full.at(-1)) {
        full.pop();
        top = { height: top.height + 1, hash: join(last.hash, top.hash) };
      }
      full.push(top);
      if (i % PAUSE_EVERY === PAUSE_EVERY - 1) await pause();
    }
    return full.length === 0 ? sha256(new Uint8Array()) : full.map(({ hash }) => hash).reduceRight((right, left) => join(left, right));
  }

  async function isRoot(): Promise<boolean> {
    const { leaves, count, root } = record;
    if (record.version !== 1 || !Array.isArray(leaves) || leaves.length !== count || (own?.root !== undefined && own.root !== root)) return false;
    if (!leaves.every((leaf, i) => /^[\da-f]{64}$/.test(leaf) && (i === 0 || (leaves[i - 1] ?? '') < leaf))) return false;
    return hex(await treeHash(leaves.map(bytes))) === root;
  }

  const isBeacon = record.source === 'drand-quicknet';

  function isRound(): boolean {
    const { closedAt, rootPublishedAt, round, source, value, valueSource } = record;
    if ((valueSource !== '') !== (source === 'operator')) return false;
    if (!Number.isSafeInteger(closedAt) || !Number.isSafeInteger(rootPublishedAt) || closedAt < 1 || closedAt > rootPublishedAt) return false;
    if (!isBeacon) return Boolean(source) && Boolean(value) && round === 0;
    const wait = rootPublishedAt + LEAD - GENESIS;
    return value === '' && round === (wait < 0 ? 1 : Math.floor(wait / PERIOD) + 2);
  }

  function isSignature(): boolean {
    if (!isBeacon) return record.signature === '';
    if (!/^[\da-f]{96}$/.test(record.signature)) return false;
    const round = new Uint8Array(8);
    new DataView(round.buffer).setBigUint64(0, BigInt(record.round));
    const bls = bls12_381.shortSignatures;
    try {
      return bls.verify(bytes(record.signature), bls.hash(sha256(round), DOMAIN), bytes(KEY));
    } catch {
      return false; // no point of the group
    }
  }

  async function isOrder(): Promise<boolean> {
    const key = sha256(isBeacon ? bytes(record.signature) : text.encode(record.value));
    const tickets: { index: number; mac: string }[] = [];
    for (const [index, leaf] of record.leaves.entries()) {
      tickets.push({ index, mac: hex(hmac(sha256, key, bytes(leaf))) + leaf });
      if (index % PAUSE_EVERY === PAUSE_EVERY - 1) await pause();
    }
    tickets.sort((a, b) => (a.mac < b.mac ? -1 : 1));
    return Array.isArray(record.order) && record.order.length === tickets.length && tickets.every(({ index }, rank) => record.order[rank] === index);
  }

  function areOffers(): boolean {
    return (
      Array.isArray(record.offers) &&
      record.offers.length <= record.count &&
      record.offers.every(({ rank, quantity, skipped }, i) => rank === i + 1 && Number.isSafeInteger(quantity) && quantity > 0 && (!skipped || REASONS.has(skipped)))
    );
  }

  const checks = { root: isRoot, round: isRound, signature: isSignature, order: isOrder, offers: areOffers };
  const steps = { root: false, round: false, signature: false, order: false, offers: false };
  for (const step of DRAW_STEPS) if (!(steps[step] = await checks[step]())) break;
  let rank: number | null = null;
  if (own && steps.order) {
    const leaf = hex(sha256(Uint8Array.of(0, ...text.encode(`${own.entryId}\n${own.nonce}`))));
    rank = record.order.indexOf(record.leaves.indexOf(leaf)) + 1 || null;
  }
  return { steps, genuine: DRAW_STEPS.every((step) => steps[step]), rank };
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

function bytes(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function hex(of: Uint8Array): string {
  return Array.from(of, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
