/** The waitlist of a sale that is sold out: join, wait, take the offer, leave. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { toFault } from '../api/fault';
import { request } from '../api/request';
import type { Item, Sale } from '../api/types';
import { JoinWaitlist, LeaveWaitlist } from '../documents/waitlist';
import { apologise, count, explain, t } from '../i18n/text';
import { Tiles } from '../ui/countdown';
import { notify } from './remind';

/** Joins, and says why not. Who waits wants to be told when it is time, so this is when to ask. */
export async function join(item: Item): Promise<string | null> {
  if ('Notification' in globalThis && Notification.permission === 'default') void Notification.requestPermission();
  try {
    const { joinWaitlist } = await request(JoinWaitlist, { input: { itemId: item.id } });
    const failure = joinWaitlist?.userErrors[0];
    return failure ? explain(failure) : null;
  } catch (thrown) {
    return apologise(toFault(thrown));
  }
}

/** The person's place on the waitlist. */
export function Place({ sale, reload }: { sale: Sale; reload: () => void }) {
  const entry = sale.viewer?.waitlistEntry;
  const why = useSignal<string | null>(null);
  const offered = entry?.status === 'OFFERED' ? entry.offerExpiresAt : null;
  useEffect(() => {
    if (offered) notify(`${t('waitlist.offer')}: ${sale.title}`);
  }, [offered]);
  const many = sale.items.length > 1;
  if (!entry || !['WAITING', 'OFFERED'].includes(entry.status)) return null;

  const leave = async (): Promise<void> => {
    try {
      await request(LeaveWaitlist, { input: { waitlistEntryId: entry.id } });
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
          <p class="font-medium">{entry.ahead ? t('waitlist.ahead', { n: count(entry.ahead) }) : t('waitlist.next')}</p>
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
