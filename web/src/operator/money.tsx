/** The money of an order and of a sale: what came in, went back, was kept, and is left. */
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { OrderMoney, SaleMoney, type TotalsParts } from '../documents/money';
import { count, money } from '../i18n/text';
import { Correction } from '../pages/correction';
import { addressLine } from '../pages/address-book';
import { DateTime, FaultMessage, Loading, NotFound, Stale, Title, Unready } from '../ui/bits';
import { ot } from './texts';

type Totals = ResultOf<typeof TotalsParts>;

const COLUMNS = ['charged', 'refunded', 'fees', 'net'] as const;

/** One line per currency. */
export function TotalsTable({ totals }: { totals: readonly Totals[] }) {
  const unknown = totals.reduce((sum, { feesUnknown }) => sum + feesUnknown, 0);
  if (!totals.length) return <p class="text-soft">{ot('op.money.none')}</p>;
  return (
    <>
      {totals.map((each) => (
        <dl key={each.charged.currencyCode} class="mb-3 grid grid-cols-2 gap-x-6 gap-y-2 sm:grid-cols-4">
          {COLUMNS.map((column) => (
            <div key={column}>
              <dt class="text-sm text-soft">{ot(`op.money.${column}`)}</dt>
              <dd class={`tabular-nums ${column === 'net' ? 'font-semibold' : ''}`}>{money(each[column])}</dd>
            </div>
          ))}
        </dl>
      ))}
      {unknown > 0 && <p class="text-sm text-soft">{ot('op.money.unknown', { n: count(unknown) })}</p>}
    </>
  );
}

/** The money of a sale, on its page. */
export function SaleTotals({ id }: { id: string }) {
  const { page, reload } = useLoad(`sale-money ${id}`, async (signal) => (await request(SaleMoney, { id }, signal)).sale);
  useRefresh(reload);
  return (
    <section class="card p-5" aria-label={ot('op.money')}>
      <div class="mb-3 flex flex-wrap items-center justify-between gap-3">
        <h2 class="head">{ot('op.money')}</h2>
        <button class="link" onClick={() => void reload()}>
          {ot('op.refresh')}
        </button>
      </div>
      {page.value.state === 'ready' && <TotalsTable totals={page.value.data.moneyTotals ?? []} />}
      {page.value.state === 'loading' && <Loading />}
      {page.value.state === 'failed' && <FaultMessage fault={page.value.fault} again={reload} />}
    </section>
  );
}

/** The page of the money of an order. */
export function OrderMoneyPage({ id }: { id: string }) {
  const { page, reload } = useLoad(`order-money ${id}`, async (signal) => (await request(OrderMoney, { id }, signal)).order);
  useRefresh(reload);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<NotFound />} />;
  const { number, moneyTotals, ledger, recipient } = page.value.data;
  return (
    <div class="grid gap-6">
      <div class="flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.money.of', { number })}</Title>
        <Link class="link" href={`/orders/${id}`}>
          {ot('op.money.back')}
        </Link>
      </div>
      <Stale fault={page.value.fault} again={reload} />
      <section class="card p-5" aria-label={ot('op.money')}>
        <TotalsTable totals={moneyTotals ?? []} />
      </section>
      {!!ledger?.length && (
        <section class="card p-5">
          <h2 class="head mb-3">{ot('op.money.history')}</h2>
          <ul class="grid gap-2">
            {ledger.map((entry) => (
              <li key={`${entry.kind} ${entry.at} ${entry.transaction}`} class="note flex flex-wrap items-center gap-x-4 gap-y-1">
                <strong>{ot(`op.ledger.${entry.kind}`)}</strong>
                <span class="tabular-nums">{money(entry.amount)}</span>
                <span class="grow text-sm text-soft wrap-anywhere">
                  {entry.provider} {entry.transaction}
                </span>
                <span class="text-sm text-soft">
                  <DateTime at={entry.at} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {recipient && (
        <section class="card grid gap-2 p-5">
          <p>
            <bdi>{recipient.name}</bdi>, {recipient.phone}
            <br />
            {addressLine(recipient)}
          </p>
          <Correction id={id} revision={0} recipient={recipient} corrected={() => void reload()} reason />
        </section>
      )}
    </div>
  );
}
