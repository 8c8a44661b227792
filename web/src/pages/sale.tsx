/** A sale: what is sold, what is left, and the button. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { putSale, sales, stocks } from '../api/stores';
import { now, reading, second } from '../api/clock';
import { Fault } from '../api/fault';
import { follow } from '../api/live';
import { useLoad } from '../api/load';
import { request } from '../api/request';
import { person } from '../api/session';
import type { Item, Sale } from '../api/types';
import { SaleBySlug, SaleStatus, SaleStock } from '../documents/buyer';
import { clockTime, span, t } from '../i18n/text';
import { BuyBox } from '../purchase/buybox';
import { isOver, usePhase } from '../purchase/button';
import { Broken, leftOf, Loading, NoSale, PhaseChip, Picture, Price, Stale, StockBar, Title, When } from '../ui/bits';
import { Tiles } from '../ui/countdown';
import { Markdown } from '../ui/markdown';
import { useCountedTitle } from '../ui/title';

const POLL_MS = 3_000;

/** Asks for a sale by its name in addresses and keeps it. */
async function ask(slug: string, signal?: AbortSignal): Promise<Sale | null> {
  const { sale } = await request(SaleBySlug, { slug }, signal);
  if (sale) putSale(sale);
  if (sale && !sale.viewer && person.peek()) throw new Fault('UNAVAILABLE', 'how the person stands to the sale is not known');
  return sale;
}

/** Whether a sale is over as far as is known; the server ends what follows it. */
const hasEnded = (id: string): boolean => isOver(sales.of(id).peek()?.phase ?? 'UPCOMING');

/** Follows a sale and its stock while the page is open. */
function useSale(id: string | null, slug: string): void {
  useEffect(() => {
    if (!id) return;
    const poll = async (): Promise<number | null> => {
      await ask(slug);
      return hasEnded(id) ? null : POLL_MS;
    };
    const stops = [
      follow(SaleStatus, { id }, {
        next: ({ saleStatus }) => (putSale(saleStatus.sale), hasEnded(id)),
        failed: () => {},
        poll,
      }),
      follow(SaleStock, { id }, {
        next: ({ saleStock }) => {
          for (const item of saleStock.items) stocks.put(item.id, item.stock);
          return hasEnded(id);
        },
        failed: () => {},
        poll: () => Promise.resolve(hasEnded(id) ? null : 60_000), // the sale's own poll brings the stock too
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, [id]);
}

/** The page. */
export function SalePage({ slug }: { slug: string }) {
  const { page, reload } = useLoad(`sale ${slug}`, (signal) => ask(slug, signal));
  const loaded = page.value.state === 'ready' ? page.value : null;
  useSale(loaded?.data.id ?? null, slug);
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return (
        <div class="page">
          <Broken fault={page.value.fault} again={reload} />
        </div>
      );
    case 'missing':
      return (
        <div class="page">
          <NoSale again={reload} />
        </div>
      );
    case 'ready': {
      const sale = sales.of(page.value.data.id).value ?? page.value.data;
      return (
        <div class="page max-lg:pb-36">
          <Stale fault={page.value.fault} again={reload} />
          <Shown sale={sale} reload={reload} />
        </div>
      );
    }
  }
}

function Shown({ sale, reload }: { sale: Sale; reload: () => void }) {
  const mine = sale.viewer?.order?.item.id ?? sale.viewer?.waitlistEntry?.item.id;
  const chosen = useSignal(mine ?? sale.items[0]?.id ?? '');
  const item = sale.items.find(({ id }) => id === chosen.value) ?? sale.items[0];
  const phase = usePhase(sale);
  useCountedTitle(sale.title, phase === 'UPCOMING' ? Date.parse(sale.startsAt) : null);
  if (!item) return <Title>{sale.title}</Title>;
  const stock = stocks.of(item.id).value ?? item.stock;
  return (
    <div class="grid grid-cols-1 items-start gap-6 lg:grid-cols-[minmax(0,1fr)_24rem] lg:grid-rows-[auto_1fr]">
      <div class="grid gap-4">
        <div>
          <div class="mb-2 flex flex-wrap items-center gap-3">
            <PhaseChip phase={phase} />
            <Clock />
          </div>
          <Title>{sale.title}</Title>
        </div>
        <Picture goods={item.goods} class="aspect-[4/3] w-full rounded-2xl" />
      </div>
      <div class="card grid gap-4 p-5 lg:sticky lg:top-20 lg:row-span-2">
        <Items sale={sale} chosen={item.id} choose={(id) => (chosen.value = id)} />
        <Price now={item.price} usual={item.goods.listPrice} large />
        <StockBar stock={stock} asOf />
        <Window sale={sale} />
        <p class="text-sm text-soft">
          {t('sale.limit', { n: sale.purchaseLimit })} · {t('sale.window', { time: span(sale.paymentWindowSeconds) })}
        </p>
        <BuyBox sale={sale} item={item} stock={stock} signedIn={person.value !== null} reload={reload} choose={(id) => (chosen.value = id)} />
      </div>
      <div class="grid gap-6">
        <Texts item={item} sale={sale} />
      </div>
    </div>
  );
}

/** The server's clock and how far it can be off. */
function Clock() {
  void second.value;
  const bound = reading.value?.bound;
  return (
    <span class="notranslate text-sm text-soft tabular-nums" aria-hidden="true">
      {bound === undefined
        ? t('clock.unknown')
        : t('clock.server', { time: clockTime(now()), bound: Math.max(1, Math.ceil(bound)) })}
    </span>
  );
}

/** When it opens and ends, with the countdown to what comes next. */
function Window({ sale }: { sale: Sale }) {
  const phase = usePhase(sale);
  const until = phase === 'UPCOMING' ? sale.startsAt : isOver(phase) ? null : sale.endsAt;
  return (
    <div class="grid gap-2">
      {until && (
        <p class="flex flex-wrap items-center justify-between gap-2" aria-hidden="true">
          <span key={phase}>{phase === 'UPCOMING' ? t('sale.opensIn') : t('sale.endsIn')}</span>
          <Tiles until={Date.parse(until)} />
        </p>
      )}
      <dl class="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-sm">
        <dt class="text-soft">{t('sale.opens')}</dt>
        <dd>
          <When at={sale.startsAt} zone />
        </dd>
        <dt class="text-soft">{t('sale.ends')}</dt>
        <dd>
          <When at={sale.endsAt} zone />
        </dd>
      </dl>
    </div>
  );
}

/** The choice between items, where there is more than one. */
function Items({ sale, chosen, choose }: { sale: Sale; chosen: string; choose: (id: string) => void }) {
  if (sale.items.length === 1) return <p class="head">{sale.items[0]!.goods.name}</p>;
  return (
    <fieldset class="grid gap-2">
      <legend class="mb-2 head">{t('sale.item')}</legend>
      {sale.items.map(({ id, goods, price, stock }) => (
        <label key={id} class="flex cursor-pointer flex-wrap items-center gap-x-3 rounded-xl border border-line px-3 py-2 has-checked:border-brand has-checked:bg-sunk">
          <input type="radio" name="item" class="size-4 accent-fill" checked={id === chosen} onChange={() => choose(id)} />
          <span class="grow basis-24">{goods.name}</span>
          <span class="ml-auto grid justify-items-end text-sm">
            <Price now={price} usual={price} />
            <span key={leftOf(stocks.of(id).value ?? stock)} class="whitespace-nowrap text-soft">{t(`stock.${leftOf(stocks.of(id).value ?? stock)}`)}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Texts({ item, sale }: { item: Item; sale: Sale }) {
  return (
    <>
      {item.goods.description && (
        <section>
          <h2 class="head mb-2">{t('sale.about')}</h2>
          <Markdown text={item.goods.description} />
        </section>
      )}
      {sale.rules && (
        <section>
          <h2 class="head mb-2">{t('sale.rules')}</h2>
          <Markdown text={sale.rules} />
        </section>
      )}
    </>
  );
}
