/** The waitlist of a sale that is sold out: join, wait, take the offer, leave. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { putPlace } from '../api/stores';
import { jitter } from '../api/connection';
import { toFault } from '../api/fault';
import { request } from '../api/request';
import type { Item, Sale } from '../api/types';
import { JoinWaitlist, LeaveWaitlist } from '../documents/waitlist';
import { apologise, count, explain, t } from '../i18n/text';
import { Tiles } from '../ui/countdown';
import { notify } from '../ui/toast';

/** Joins, and says why not. Who waits wants to be told when it is time, so this is when to ask. */
export async function join(sale: Sale, item: Item): Promise<string | null> {
  if ('Notification' in globalThis && Notification.permission === 'default') void Notification.requestPermission();
  try {
    const { joinWaitlist } = await request(JoinWaitlist, { input: { itemId: item.id } });
    if (joinWaitlist?.waitlistEntry) putPlace(sale.id, joinWaitlist.waitlistEntry);
    const failure = joinWaitlist?.userErrors[0];
    return failure ? explain(failure) : null;
  } catch (thrown) {
    return apologise(toFault(thrown));
  }
}

/** How often to ask how many are left ahead, in ms: others move without a word to us. */
const AHEAD_MS = 15_000;

/** The person's place on the waitlist. */
export function Place({ sale, reload }: { sale: Sale; reload: () => void }) {
  const entry = sale.viewer?.waitlistEntry;
  const why = useSignal<string | null>(null);
  const offered = entry?.status === 'OFFERED' ? entry.offerExpiresAt : null;
  useEffect(() => {
    if (offered) notify(`${t('waitlist.offer')}: ${sale.title}`);
  }, [offered]);
  const waiting = entry?.status === 'WAITING';
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(reload, jitter(AHEAD_MS));
    return () => clearInterval(timer);
  }, [waiting]);
  const many = sale.items.length > 1;
  if (!entry || !['WAITING', 'OFFERED'].includes(entry.status)) return null;

  const leave = async (): Promise<void> => {
    try {
      const { leaveWaitlist } = await request(LeaveWaitlist, { input: { waitlistEntryId: entry.id } });
      if (leaveWaitlist?.waitlistEntry) putPlace(sale.id, leaveWaitlist.waitlistEntry);
      const failure = leaveWaitlist?.userErrors[0];
      why.value = failure ? explain(failure) : null;
      reload();
    } catch (thrown) {
      why.value = apologise(toFault(thrown));
    }
  };
  return (
    <div class="note grid gap-2">
      {many && <p class="text-sm text-soft">{sale.items.find(({ id }) => id === entry.item.id)?.goods.name}</p>}
      {offered ? (
        <>
          <p class="font-semibold text-good" role="status">
            {t('waitlist.offer')}
          </p>
          <p class="flex flex-wrap items-center justify-between gap-2">
            {t('waitlist.offerUntil')} <Tiles until={Date.parse(offered)} />
          </p>
        </>
      ) : (
        <>
          <p key={entry.ahead} class="font-medium">{entry.ahead ? t('waitlist.ahead', { n: count(entry.ahead) }) : t('waitlist.next')}</p>
          <p class="text-sm text-soft">{t('waitlist.lead')}</p>
        </>
      )}
      {why.value && <p role="alert">{why.value}</p>}
      <button class="link justify-self-start" onClick={() => void leave()}>
        {t('waitlist.leave')}
      </button>
    </div>
  );
}
