/** The waitlist of a sale that is sold out, and the entries of a draw: join, wait, take the offer, leave. */
import { useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { jitter } from '@seckill/client/backoff';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import { putWaitlistEntry } from '../api/stores';
import { randomKey } from '@seckill/client/pending';
import type { Answer } from '@seckill/client/purchase';
import type { Challenge, Entry, Failure, Item, Sale } from '@seckill/client/types';
import { EnterDraw, JoinWaitlist, LeaveWaitlist } from '@seckill/client/documents/waitlist';
import { AuthorizeEntry } from '../documents/entry-card';
import { faultText, explain, isolate, t } from '../i18n/text';
import { entryOf } from './button';
import { notify } from '../ui/toast';

/** How often to read the place again, in ms: the server pushes nothing when others leave. */
const AHEAD_MS = 15_000;

/** A captcha to answer before joining. */
interface Check {
  item: Item;
  quantity: number;
  /** That of a refusal; null = a new one. */
  challenge: Challenge | null;
  failure: Failure | null;
}

async function join(sale: Sale, { item, quantity }: Check, { challengeId, answer }: Answer): Promise<Failure | null> {
  const input = { itemId: item.id, captcha: { challengeId, answer } };
  const done = sale.mode === 'DRAW'
    ? (await request(EnterDraw, { input: { ...input, quantity, drawNonce: randomKey() } })).enterDraw
    : (await request(JoinWaitlist, { input })).joinWaitlist;
  if (done?.waitlistEntry) putWaitlistEntry(sale.id, done.waitlistEntry);
  return done?.userErrors[0] ?? null;
}

async function leave(sale: Sale, entry: Entry): Promise<string | null> {
  const { leaveWaitlist } = await request(LeaveWaitlist, { input: { waitlistEntryId: entry.id } });
  if (leaveWaitlist?.waitlistEntry) putWaitlistEntry(sale.id, leaveWaitlist.waitlistEntry);
  const failure = leaveWaitlist?.userErrors[0];
  return failure ? explain(failure) : null;
}

/** Goes to where a card is authorized for an entry: the provider's page, or that of the shop. */
async function authorize(sale: Sale, entry: Entry): Promise<string | null> {
  const { authorizeEntry } = await request(AuthorizeEntry, { input: { waitlistEntryId: entry.id, idempotencyKey: randomKey() } });
  const failure = authorizeEntry?.userErrors[0];
  if (failure) return explain(failure);
  const { embedded, redirectUrl } = authorizeEntry?.payment ?? {};
  if (embedded) location.assign(`/s/${sale.slug}/card?entry=${entry.id}`);
  else if (redirectUrl) location.assign(redirectUrl);
  return null;
}

/** The waitlist for the status sheet. */
export interface Waitlist {
  /** Why joining or leaving failed, for the chosen item. */
  why: string | null;
  busy: Signal<boolean>;
  /** The captcha of a join; null = none is under way. */
  check: Check | null;
  /** Begins to join, or to enter the draw for some units: with a captcha. */
  join(item: Item, quantity: number): void;
  /** Authorizes a card for the entry of the chosen item. */
  authorize(): void;
  /** Joins with its answer. */
  answer(answer: Answer): void;
  /** Closes the captcha. */
  dismiss(): void;
  leave(): void;
  /** The entry of the chosen item, which waits or has an offer. */
  entry: Entry | null;
}

/** Follows the user's entries on the waitlist: reads the places regularly and notifies of an offer. */
export function useWaitlist(sale: Sale, item: Item, reload: () => void): Waitlist {
  const why = useSignal<{ text: string; about: string } | null>(null);
  const busy = useSignal(false);
  const check = useSignal<Check | null>(null);
  const entry = entryOf(sale, item.id);
  const open = sale.viewer?.items.flatMap(({ waitlistEntry }) => waitlistEntry ?? []) ?? [];
  const offered = open.find(({ status }) => status === 'OFFERED')?.offerExpiresAt ?? null;
  const waiting = open.some(({ status }) => status === 'WAITING');
  // A refusal is of one item and one state of its entry.
  const about = `${item.id} ${entry?.id} ${entry?.status} ${sale.viewer?.order?.id} ${sale.viewer?.order?.status}`;
  useEffect(() => {
    const held = sale.items.find(({ id }) => entryOf(sale, id)?.status === 'OFFERED');
    if (offered && (document.hidden || held?.id !== item.id)) notify(`${t('waitlist.offer')} · ${isolate(held?.goods.name ?? sale.title)}`);
  }, [offered]);
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(reload, jitter(AHEAD_MS));
    return () => clearInterval(timer);
  }, [waiting]);
  const run = async (work: () => Promise<string | null>): Promise<void> => {
    if (busy.peek()) return;
    busy.value = true;
    try {
      const text = await work();
      why.value = text === null ? null : { text, about };
    } catch (thrown) {
      why.value = { text: faultText(toFault(thrown)), about };
    } finally {
      busy.value = false;
      reload();
    }
  };
  return {
    why: why.value?.about === about ? why.value.text : null,
    busy,
    entry,
    check: check.value,
    join: (item, quantity) => {
      if (busy.peek() || check.peek()) return;
      if ('Notification' in globalThis && Notification.permission === 'default') void Notification.requestPermission();
      check.value = { item, quantity, challenge: null, failure: null };
    },
    answer: (answer) => {
      const asked = check.peek();
      check.value = null;
      if (asked) void run(async () => {
        const failure = await join(sale, asked, answer);
        if (failure?.__typename !== 'CaptchaError') return failure && explain(failure);
        check.value = { ...asked, challenge: failure.challenge, failure };
        return null;
      });
    },
    authorize: () => void (entry && run(() => authorize(sale, entry))),
    dismiss: () => void (check.value = null),
    leave: () => void (entry && run(() => leave(sale, entry))),
  };
}
