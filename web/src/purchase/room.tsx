/** The waiting room, when more want in than there are permits, and the draw before the opening. */
import { useEffect } from 'preact/hooks';
import { now } from '../api/clock';
import type { Sale } from '../api/types';
import { count, span, t } from '../i18n/text';
import { Tiles, useLeft } from '../ui/countdown';
import { toast } from '../ui/toast';
import type { Purchase } from './attempt';
import type { Waiting } from './waiting';

/** The place in the waiting room. */
export function Room({ purchase, waiting, sale }: { purchase: Purchase; waiting: Waiting; sale: Sale }) {
  const position = waiting.ticket.value?.position;
  const early = !position && now() < Date.parse(sale.startsAt);
  const leave = (): void => {
    waiting.leave();
    purchase.left();
  };
  return (
    <div class="note grid gap-2">
      <p class="font-medium">{t(early ? 'room.draw' : 'room.title')}</p>
      <p class="text-sm text-soft">{t(early ? 'room.drawLead' : 'room.lead')}</p>
      {position && (
        <>
          <progress class="bar" value={1 - waiting.least.value! / waiting.first.value!} max={1} aria-label={t('room.title')} />
          <p class="flex flex-wrap gap-x-4 tabular-nums">
            <span key={waiting.least.value!}>{t('queue.ahead', { n: count(waiting.least.value!) })}</span>
            <span>{position.etaSeconds === null ? t('queue.counting') : t('queue.eta', { time: span(position.etaSeconds) })}</span>
            {position.chancePercent !== null && <span>{t('queue.chance', { n: position.chancePercent })}</span>}
          </p>
        </>
      )}
      <button class="link justify-self-start" onClick={leave}>
        {t('room.leave')}
      </button>
    </div>
  );
}

/** The turn of somebody who has not pressed yet: the button is free until it lapses. */
export function Turn({ purchase, until }: { purchase: Purchase; until: number }) {
  const left = useLeft(until);
  useEffect(() => {
    if (left <= 0) {
      toast(t('room.lapsed'));
      purchase.left();
    }
  }, [left <= 0]);
  return (
    <p class="note flex flex-wrap items-center justify-between gap-2 font-medium text-good">
      <span>{t('room.yours')}</span> <Tiles until={until} />
    </p>
  );
}
