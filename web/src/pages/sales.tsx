/** The list of sales: the next sale large, then running sales, upcoming sales by opening time, and ended sales. */
import { computed, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import { cards, stocks } from '../api/stores';
import { now, second } from '../api/clock';
import { follow } from '../api/client';
import { usePaged } from '../api/paged';
import { http } from '../api/http';
import type { Card, Phase } from '@seckill/client/types';
import { Sales as SalesDoc, SaleStock } from '@seckill/client/documents/sale';
import { bounded } from '../forms/bounded';
import { isolate, lowest, money, t, timeOfDay } from '../i18n/text';
import { phaseAt, usePhase } from '../purchase/button';
import { altOf, FaultMessage, Loading, More, PhaseChip, Picture, Stale, StockBar, Title, DateTime } from '../ui/bits';
import { Ticking } from '../ui/countdown';
import { Icon } from '../ui/icons';
import { useTitle } from '../ui/title';
import { nextOf, slotsOf, type Slot } from './slots';

const NONE: Card[] = [];
/** Most sales of the list with live stock. */
const FOLLOWED = 6;
/** Poll interval in ms. */
const POLL_MS = 15_000;
/** Spread of the reload after an opening, in ms, so that browsers do not reload at the same time. */
const SPREAD_MS = 1_500;

/** Subscribes to the stock of a sale; where that fails, polls the list. */
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

/** The lowest price of a sale's items. */
function From({ sale }: { sale: Card }) {
  const least = lowest(sale.items.map(({ price }) => price));
  const amount = money(least);
  return <strong class="numeral text-lg">{sale.items.length > 1 ? t('price.from', { amount }) : amount}</strong>;
}

/** The sale that opens next, large, with its countdown. */
function Hero({ sale }: { sale: Card }) {
  const item = sale.items[0];
  if (!item) return null;
  return (
    <section aria-labelledby="next" class="relative -mx-4 mb-8 grid overflow-hidden bg-hero text-white sm:mx-0 sm:grid-cols-2 sm:rounded-2xl">
      <Picture goods={item.goods} alt={altOf(item.goods)} class="aspect-[16/9] h-full w-full sm:aspect-[4/3]" />
      <div class="grid content-center justify-items-start gap-3 p-6 sm:p-8">
        <h2 id="next" class="text-sm font-semibold">
          {t('sales.next')}
        </h2>
        <h3 class="text-2xl font-extrabold tracking-tight text-balance sm:text-3xl">
          <Link href={`/s/${sale.slug}`} class="after:absolute after:inset-0">
            <bdi>{sale.title}</bdi>
          </Link>
        </h3>
        <p class="text-sm">
          <DateTime at={sale.startsAt} />
        </p>
        <span class="numeral text-5xl">
          <Ticking until={Date.parse(sale.startsAt)} />
        </span>
        <From sale={sale} />
      </div>
    </section>
  );
}

/** One sale in the list; its stock is live when it is followed. */
function SaleCard({ sale, followed, poll }: { sale: Card; followed: boolean; poll: () => void }) {
  const phase = usePhase(sale);
  useStock(followed ? sale.id : null, poll);
  const item = sale.items[0];
  if (!item) return null;
  return (
    <li class="group relative grid content-start gap-2">
      <div class="relative overflow-hidden rounded-2xl">
        <Picture goods={item.goods} alt={altOf(item.goods)} class="aspect-[4/3] w-full transition-transform duration-300 group-hover:scale-[1.02]" />
        <span class="absolute top-3 left-3">
          <PhaseChip phase={phase} draw={sale.mode === 'DRAW'} />
        </span>
      </div>
      <div class="flex items-baseline justify-between gap-3">
        <h3 class="font-bold">
          <Link href={`/s/${sale.slug}`} class="after:absolute after:inset-0">
            <bdi>{sale.title}</bdi>
          </Link>
        </h3>
        <span class="shrink-0">
          <From sale={sale} />
        </span>
      </div>
      <p class="line-clamp-1 text-sm text-soft">{sale.items.map(({ goods }) => isolate(goods.name)).join(' · ')}</p>
      <State sale={sale} phase={phase} />
    </li>
  );
}

/** What matters in each phase: the time to the opening, the stock, the end. */
function State({ sale, phase }: { sale: Card; phase: Phase }) {
  switch (phase) {
    case 'UPCOMING':
      return (
        <p class="text-sm font-semibold">
          <Ticking until={Date.parse(sale.startsAt)} />
          <span class="sr-only">
            {t('sale.opens')} <DateTime at={sale.startsAt} />
          </span>
        </p>
      );
    case 'LIVE':
    case 'PAUSED':
    case 'SOLD_OUT':
      return <StockBar draw={sale.mode === 'DRAW'} stock={stocks.of(sale.items[0]!.id).value ?? sale.items[0]!.stock} />;
    case 'ENDED':
    case 'CANCELLED':
      return (
        <p class="text-sm text-soft">
          {t('sale.ends')} <DateTime at={sale.endsAt} />
        </p>
      );
  }
}

/** The sales of one slot. Ended ones are collapsed. */
function Section({ slot, followed, poll }: { slot: Slot; followed: ReadonlySet<Card>; poll: () => void }) {
  const list = (
    <ul class="grid gap-x-4 gap-y-8 sm:grid-cols-2 lg:grid-cols-3">
      {slot.sales.map((sale) => (
        <SaleCard key={sale.id} sale={sale} followed={followed.has(sale)} poll={poll} />
      ))}
    </ul>
  );
  if (slot.id === 'over') {
    return (
      <details aria-labelledby={slot.id}>
        <summary class="head min-h-11 py-2">
          <h2 id={slot.id} class="inline">
            {slot.title} <span class="font-normal text-soft tabular-nums">{slot.sales.length}</span>
          </h2>
        </summary>
        <div class="pt-3">{list}</div>
      </details>
    );
  }
  return (
    <section aria-labelledby={slot.id}>
      <h2 id={slot.id} class="head mb-3">
        {slot.at ? <DateTime at={slot.at} zone /> : slot.title}
      </h2>
      {list}
    </section>
  );
}

export function Sales() {
  useTitle(t('sales.title'));
  const search = new URLSearchParams(useSearch()).get('q') ?? '';
  const [, go] = useLocation();
  const draft = useSignal(search);
  useEffect(() => void (draft.value = search), [search]);
  const { page, reload, next: showMore, busy } = usePaged(`sales ${search}`, async (after, signal) => {
    const { sales } = await ask(after, search, signal);
    for (const { node } of sales?.edges ?? []) {
      cards.set(node.slug, node);
      for (const item of node.items) stocks.put(item.id, item.stock);
    }
    return sales;
  });

  const ready = page.value.state === 'ready' ? page.value : null;
  const sales = ready?.data.nodes ?? NONE;
  usePhases(sales);
  const open = sales.filter((sale) => ['LIVE', 'SOLD_OUT'].includes(phaseAt(sale, now())));
  const followed = new Set(open.slice(0, FOLLOWED));

  // Phases change by the clock; the list is reloaded for the stock.
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

  const hero = search ? undefined : nextOf(sales, now());
  const slots = slotsOf(sales.filter((sale) => sale !== hero), now());
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
            ref={bounded({ most: 254 })}
            value={draft.value}
            onInput={(event) => (draft.value = event.currentTarget.value)}
          />
          <span class="pointer-events-none absolute inset-y-0 left-3 flex items-center text-soft">
            <Icon name="search" />
          </span>
        </form>
      </div>
      {page.value.state === 'loading' && <Loading />}
      {page.value.state === 'failed' && <FaultMessage fault={page.value.fault} again={reload} />}
      {ready && <Stale fault={ready.fault} again={reload} />}
      {ready && !sales.length && (
        <p class="note">{search ? t('sales.noneFound', { text: search }) : t('sales.none')}</p>
      )}
      {hero && <Hero sale={hero} />}
      {slots.length > 1 && (
        <nav aria-label={t('sales.slots')} class="-mx-4 mb-6 overflow-x-auto px-4 py-1">
          <ul class="flex gap-2">
            {slots.map((slot) => (
              <li key={slot.id}>
                <a href={`#${slot.id}`} class="chip min-h-10 px-4 tabular-nums hover:border-edge">
                  {slot.at ? timeOfDay(slot.at) : slot.title} <span class="text-soft">{slot.sales.length}</span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <div class="grid gap-10">
        {slots.map((slot) => (
          <Section key={slot.id} slot={slot} followed={followed} poll={poll} />
        ))}
      </div>
      {ready?.data.more && <More next={showMore} busy={busy} />}
    </div>
  );
}

/** Reads the list without a token: it is the same for every user. */
function ask(after: string | null, search: string, signal: AbortSignal) {
  return http.post(SalesDoc, { after, search: search || null }, null, signal);
}
