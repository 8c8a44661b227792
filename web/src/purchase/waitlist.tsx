/** The waitlist of a sale that is sold out: join, wait, take the offer, leave. */
import { useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { jitter } from '@seckill/client/backoff';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import { putWaitlistEntry } from '../api/stores';
import type { Entry, Item, Sale } from '@seckill/client/types';
import { JoinWaitlist, LeaveWaitlist } from '@seckill/client/documents/waitlist';
import { faultText, explain, t } from '../i18n/text';
import { notify } from '../ui/toast';

/** How often to read the place again, in ms: the server pushes nothing when others leave. */
const AHEAD_MS = 15_000;

async function join(sale: Sale, item: Item): Promise<string | null> {
  if ('Notification' in globalThis && Notification.permission === 'default') void Notification.requestPermission();
  const { joinWaitlist } = await request(JoinWaitlist, { input: { itemId: item.id } });
  if (joinWaitlist?.waitlistEntry) putWaitlistEntry(sale.id, joinWaitlist.waitlistEntry);
  const failure = joinWaitlist?.userErrors[0];
  return failure ? explain(failure) : null;
}

async function leave(sale: Sale, entry: Entry): Promise<string | null> {
  const { leaveWaitlist } = await request(LeaveWaitlist, { input: { waitlistEntryId: entry.id } });
  if (leaveWaitlist?.waitlistEntry) putWaitlistEntry(sale.id, leaveWaitlist.waitlistEntry);
  const failure = leaveWaitlist?.userErrors[0];
  return failure ? explain(failure) : null;
}

/** The waitlist for the status sheet. */
export interface Waitlist {
  /** Why joining or leaving failed. */
  why: Signal<string | null>;
  busy: Signal<boolean>;
  join(item: Item): void;
  leave(): void;
  /** The entry that waits or has an offer. */
  entry: Entry | null;
}

/** Follows the user's entry on the waitlist: reads the place regularly and notifies of an offer. */
export function useWaitlist(sale: Sale, reload: () => void): Waitlist {
  const why = useSignal<string | null>(null);
  const busy = useSignal(false);
  const known = sale.viewer?.waitlistEntry;
  const entry = known && ['WAITING', 'OFFERED'].includes(known.status) ? known : null;
  const offered = entry?.status === 'OFFERED' ? entry.offerExpiresAt : null;
  const waiting = entry?.status === 'WAITING';
  useEffect(() => {
    if (offered) notify(`${t('waitlist.offer')}: ${sale.title}`);
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
      why.value = await work();
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    } finally {
      busy.value = false;
      reload();
    }
  };
  return {
    why,
    busy,
    entry,
    join: (item) => void run(() => join(sale, item)),
    leave: () => void (entry && run(() => leave(sale, entry))),
  };
}
