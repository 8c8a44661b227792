/** The list of sales: what is on now, then each opening time, then what is over. */
import { computed, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import { stocks } from '../api/stores';
import { now, second } from '../api/clock';
import { follow } from '../api/live';
import { usePaged } from '../api/paged';
import { post } from '../api/post';
import type { Card, Phase } from '../api/types';
import { Sales as SalesDoc, SaleStock } from '../documents/buyer';
import { t } from '../i18n/text';
import { phaseAt, usePhase } from '../purchase/button';
import { Broken, Loading, More, PhaseChip, Picture, Price, Stale, StockBar, Title, When } from '../ui/bits';
import { Tiles } from '../ui/countdown';
import { Icon } from '../ui/icons';
import { useTitle } from '../ui/title';
import { slotsOf } from './slots';

const NONE: Card[] = [];
/** Live lists at most; the rest is as old as the page. */
const FOLLOWED = 6;
/** Poll at this pace, in ms. */
const POLL_MS = 15_000;
/** Spread of the reload after an opening, in ms, so that browsers do not ask all at once. */
const SPREAD_MS = 1_500;

/** Follows the stock of a sale; where it cannot be followed, the list is asked for. */
function useStock(id: string | null, poll: () => void): void {
  useEffect(() => {
    if (!id) return;
    return follow(SaleStock, { id }, {
      next: ({ saleStock }) => {
        for (const item of saleStock.items) stocks.put(item.id, item.stock);
        return false;
      },
      failed: () => {},
      poll: () => {
        poll();
        return Promise.resolve(POLL_MS);
      },
    });
  }, [id]);
}

/** Renders again when a sale of the list goes from one phase to the next. */
function usePhases(sales: Card[]): void {
  const phases = useMemo(() => computed(() => (second.value, sales.map((sale) => phaseAt(sale, now())).join())), [sales]);
  void phases.value;
}

/** One sale in the list; its stock is live when it is followed. */
function SaleCard({ sale, followed, poll }: { sale: Card; followed: boolean; poll: () => void }) {
  const phase = usePhase(sale);
  useStock(followed ? sale.id : null, poll);
  const item = sale.items[0];
  if (!item) return null;
  return (
    <li class="card relative flex gap-4 overflow-hidden p-3 has-[a:hover]:border-edge">
      <Picture goods={item.goods} class="size-24 shrink-0 rounded-xl sm:size-32" />
      <div class="flex min-w-0 grow flex-col gap-1.5">
        <div class="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
          <h3 class="font-semibold">
            <Link href={`/s/${sale.slug}`} class="after:absolute after:inset-0">
              {sale.title}
            </Link>
          </h3>
          <PhaseChip phase={phase} />
        </div>
        <p class="line-clamp-2 text-sm text-soft">{sale.items.map(({ goods }) => goods.name).join(' · ')}</p>
        <Price now={item.price} usual={item.goods.listPrice} />
        <div class="mt-auto">
          <State sale={sale} phase={phase} />
        </div>
      </div>
    </li>
  );
}

/** What matters in each phase: the time to the opening, what is left, when it was. */
function State({ sale, phase }: { sale: Card; phase: Phase }) {
  switch (phase) {
    case 'UPCOMING':
      return (
        <p class="text-sm">
          <Tiles until={Date.parse(sale.startsAt)} />
          <span class="sr-only">
            {t('sale.opens')} <When at={sale.startsAt} />
          </span>
        </p>
      );
    case 'LIVE':
    case 'PAUSED':
    case 'SOLD_OUT':
      return <StockBar stock={stocks.of(sale.items[0]!.id).value ?? sale.items[0]!.stock} />;
    case 'ENDED':
    case 'CANCELLED':
      return (
        <p class="text-sm text-soft">
          {t('sale.ends')} <When at={sale.endsAt} />
        </p>
      );
  }
}

/** The page. */
export function Sales() {
  useTitle(t('sales.title'));
  const search = new URLSearchParams(useSearch()).get('q') ?? '';
  const [, go] = useLocation();
  const draft = useSignal(search);
  useEffect(() => void (draft.value = search), [search]);
  const { page, reload, next: showMore, busy } = usePaged(`sales ${search}`, async (after, signal) => {
    const { sales } = await ask(after, search, signal);
    for (const { node } of sales?.edges ?? []) for (const item of node.items) stocks.put(item.id, item.stock);
    return sales;
  });

  const ready = page.value.state === 'ready' ? page.value : null;
  const sales = ready?.data.nodes ?? NONE;
  usePhases(sales);
  const open = sales.filter((sale) => ['LIVE', 'SOLD_OUT'].includes(phaseAt(sale, now())));
  const followed = new Set(open.slice(0, FOLLOWED));

  // Phases move by the clock; the server is asked for the figures behind them.
  const next = Math.min(...sales.map((sale) => Date.parse(sale.nextTransitionAt ?? '') || Infinity).filter((at) => at > now()));
  useEffect(() => {
    if (next === Infinity) return;
    const timer = setTimeout(reload, Math.min(next - now() + Math.random() * SPREAD_MS + 100, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  }, [next]);

  const polled = useRef({ at: 0, reload });
  polled.current.reload = reload;
  const poll = (): void => { // once for all cards
    if (performance.now() - polled.current.at < POLL_MS / 2) return;
    polled.current.at = performance.now();
    polled.current.reload();
  };

  const slots = slotsOf(sales, now());
  return (
    <div class="page">
      <div class="mb-5 flex flex-wrap items-end justify-between gap-4">
        <div>
          <Title>{t('sales.title')}</Title>
          <p class="mt-1 text-soft">{t('sales.lead')}</p>
        </div>
        <form
          role="search"
          class="relative w-full sm:w-64"
          onSubmit={(event) => {
            event.preventDefault();
            go(draft.value.trim() ? `/?q=${encodeURIComponent(draft.value.trim())}` : '/');
          }}
        >
          <input
            type="search"
            class="field pl-10"
            aria-label={t('sales.search')}
            placeholder={t('sales.search')}
            maxLength={64}
            value={draft.value}
            onInput={(event) => (draft.value = event.currentTarget.value)}
          />
          <span class="pointer-events-none absolute inset-y-0 left-3 flex items-center text-soft">
            <Icon name="search" />
          </span>
        </form>
      </div>
      {page.value.state === 'loading' && <Loading />}
      {page.value.state === 'failed' && <Broken fault={page.value.fault} again={reload} />}
      {ready && <Stale fault={ready.fault} again={reload} />}
      {ready && !sales.length && (
        <p class="note">{search ? t('sales.noneFound', { text: search }) : t('sales.none')}</p>
      )}
      {slots.length > 1 && (
        <nav aria-label={t('sales.slots')} class="-mx-4 mb-5 overflow-x-auto px-4 py-1">
          <ul class="flex gap-2">
            {slots.map((slot) => (
              <li key={slot.id}>
                <a href={`#${slot.id}`} class="chip min-h-9 px-4 hover:border-edge">
                  {slot.title} <span class="text-soft">{slot.sales.length}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <div class="grid gap-x-3 gap-y-8 md:grid-cols-2">
        {slots.map((slot) => (
          <section key={slot.id} aria-labelledby={slot.id} class={slot.sales.length > 1 ? 'md:col-span-2' : ''}>
            <h2 id={slot.id} class="head mb-3">
              {slot.at ? <When at={slot.at} zone /> : slot.title}
            </h2>
            <ul class={slot.sales.length > 1 ? 'grid gap-3 md:grid-cols-2' : ''}>
              {slot.sales.map((sale) => (
                <SaleCard key={sale.id} sale={sale} followed={followed.has(sale)} poll={poll} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      {ready?.data.more && <More next={showMore} busy={busy} />}
    </div>
  );
}

/** The list is the same for everybody, so nobody's token goes with it. */
function ask(after: string | null, search: string, signal: AbortSignal) {
  return post(SalesDoc, { after, search: search || null }, null, signal);
}
