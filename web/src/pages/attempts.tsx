/** The rejected attempts of the signed-in user in a sale, with their reasons. */
import { useSignal } from '@preact/signals';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Phase, Sale } from '@seckill/client/types';
import { MyAttempts } from '../documents/attempts';
import { count, isolate, t } from '../i18n/text';
import { wasRefused } from '../purchase/attempt';
import { DateTime, Unready } from '../ui/bits';

type Attempt = ResultOf<typeof MyAttempts>['myAttempts']['attempts'][number];

/** Whether the user may have got nothing: an attempt was refused and no later one won, or nothing is left and there is no order. */
function gotNothing({ id, viewer }: Sale, phase: Phase): boolean {
  const over = phase === 'SOLD_OUT' || phase === 'ENDED';
  const bought = viewer?.order && !['CANCELLED', 'EXPIRED'].includes(viewer.order.status);
  return (!bought && wasRefused(id)) || (over && !viewer?.order);
}

/** The section of a sale's page. It sends its request only when it is opened, so that a sell-out causes no burst of requests. */
export function Attempts({ sale, phase }: { sale: Sale; phase: Phase }) {
  const open = useSignal(false);
  if (!gotNothing(sale, phase)) return null;
  return (
    <details class="card p-4" data-attempts onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary class="cursor-pointer font-medium">{t('why.title')}</summary>
      {open.value && <List sale={sale} />}
    </details>
  );
}

function List({ sale }: { sale: Sale }) {
  const { page, reload } = useLoad(`attempts ${sale.id}`, async (signal) => (await request(MyAttempts, { id: sale.id }, signal)).myAttempts);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} />;
  const { attempts } = page.value.data;
  if (!attempts.length) return <p class="mt-3 text-sm text-soft">{t('why.none')}</p>;
  return (
    <>
      <ul class="mt-3 grid gap-3">
        {attempts.map((attempt) => (
          <Row key={`${attempt.stage}${attempt.code}${attempt.item?.id}`} attempt={attempt} sale={sale} />
        ))}
      </ul>
      <p class="mt-3 text-sm text-soft">{t('why.kept')}</p>
    </>
  );
}

function Row({ attempt, sale }: { attempt: Attempt; sale: Sale }) {
  const { stage, message, times, lastAt, unitsLeft, ahead, item } = attempt;
  const name = sale.items.length > 1 && sale.items.find(({ id }) => id === item?.id)?.goods.name;
  return (
    <li class="border-t border-line pt-3">
      <p class="font-medium">{message}</p>
      <p class="text-sm text-soft">
        {name && `${isolate(name)} · `}
        {t(`why.${stage}`)} · {t('why.times', { n: count(times) })} · <DateTime at={lastAt} />
      </p>
      {(unitsLeft !== null || ahead !== null) && (
        <p class="text-sm text-soft">
          {unitsLeft !== null && t('why.left', { n: count(unitsLeft) })}
          {unitsLeft !== null && ahead !== null && ' · '}
          {ahead !== null && t('why.ahead', { n: count(ahead) })}
        </p>
      )}
    </li>
  );
}
