/** The page of a sale: what is sold, what is left, and the status sheet. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import { putSale, sales, stocks } from '../api/stores';
import { now, reading, second } from '../api/clock';
import { Fault } from '@seckill/client/fault';
import { follow } from '../api/client';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { person } from '../api/session';
import type { Item, Sale } from '@seckill/client/types';
import { SaleBySlug, SaleStatus, SaleStock } from '@seckill/client/documents/sale';
import { clockTime, money, span, t } from '../i18n/text';
import { BuyBox } from '../purchase/buybox';
import { Checklist } from '../purchase/checklist';
import { Remind } from '../purchase/remind';
import { isOver, usePhase } from '../purchase/button';
import { Broken, leftOf, Loading, NoSale, PhaseChip, Picture, Price, Stale, StockBar, Title, When } from '../ui/bits';
import { Markdown } from '../ui/markdown';
import { Attempts } from './attempts';
import { useCountedTitle } from '../ui/title';

const POLL_MS = 3_000;
/** Most units that the quantity field offers. */
const MOST_UNITS = 10;

/** Reads a sale by its slug and keeps it. */
async function ask(slug: string, signal?: AbortSignal): Promise<Sale | null> {
  const { sale } = await request(SaleBySlug, { slug }, signal);
  if (sale) putSale(sale);
  if (sale && !sale.viewer && person.peek()) throw new Fault('UNAVAILABLE', 'the server did not answer for the viewer');
  return sale;
}

/** Whether a sale has ended as far as is known; then the server ends its subscriptions. */
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
        poll: () => Promise.resolve(hasEnded(id) ? null : 60_000), // the poll of the sale includes the stock
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
        <div class="page max-lg:pb-80">
          <Stale fault={page.value.fault} again={reload} />
          <Shown sale={sale} reload={reload} />
        </div>
      );
    }
  }
}

/** The chosen item: that of the order or the waitlist, else the one in the address, else the first. */
function useItem(sale: Sale): [Item | undefined, (id: string) => void] {
  const asked = new URLSearchParams(useSearch()).get('item');
  const [where, go] = useLocation();
  const { order, waitlistEntry } = sale.viewer ?? {};
  const held = order?.status === 'PENDING_PAYMENT' ? order.item.id : null;
  const offered = waitlistEntry && ['WAITING', 'OFFERED'].includes(waitlistEntry.status) ? waitlistEntry.item.id : null;
  const wanted = held ?? asked ?? offered ?? order?.item.id;
  const item = sale.items.find(({ id }) => id === wanted) ?? sale.items[0];
  return [item, (id) => go(`${where}?item=${encodeURIComponent(id)}`, { replace: true })];
}

function Shown({ sale, reload }: { sale: Sale; reload: () => void }) {
  const [item, choose] = useItem(sale);
  const wanted = useSignal(1);
  const phase = usePhase(sale);
  useCountedTitle(sale.title, phase === 'UPCOMING' ? Date.parse(sale.startsAt) : null);
  if (!item) return <Title>{sale.title}</Title>;
  const stock = stocks.of(item.id).value ?? item.stock;
  const room = sale.viewer?.items.find((each) => each.item.id === item.id)?.remainingLimit;
  const most = Math.max(1, Math.min(room ?? item.purchaseLimit, sale.purchaseLimit ?? MOST_UNITS, MOST_UNITS));
  const quantity = Math.min(wanted.value, most);
  return (
    <div class="grid grid-cols-1 items-start gap-6 lg:grid-cols-[minmax(0,1fr)_24rem] lg:gap-8">
      <div class="grid min-w-0 gap-6">
        <div class="relative -mx-4 -mt-6 sm:mx-0 sm:mt-0">
          <Picture goods={item.goods} class="aspect-[4/3] max-h-[60dvh] w-full sm:rounded-2xl" />
          <span class="absolute top-3 left-3">
            <PhaseChip phase={phase} />
          </span>
        </div>
        <div class="grid gap-4">
          <Title>{sale.title}</Title>
          <Items sale={sale} chosen={item.id} choose={choose} />
          {most > 1 && !isOver(phase) && <Quantity most={most} value={quantity} set={(n) => (wanted.value = n)} />}
        </div>
        <Texts item={item} sale={sale} />
      </div>
      <div class="grid gap-4 lg:sticky lg:top-16">
        <BuyBox sale={sale} item={item} stock={stock} quantity={quantity} signedIn={person.value !== null} reload={reload} choose={choose} />
        <div class="card grid gap-4 p-4">
          <Price now={item.price} usual={item.goods.listPrice} large />
          {!isOver(phase) && <StockBar stock={stock} asOf />}
          <Window sale={sale} />
          <p class="text-sm text-soft">
            {limitOf(sale, item)} · {t('sale.window', { time: span(sale.paymentWindowSeconds) })}
          </p>
          <Prepare sale={sale} />
        </div>
        {person.value && <Attempts sale={sale} phase={phase} />}
      </div>
    </div>
  );
}

/** The limits of a sale and an item in words. */
function limitOf(sale: Sale, item: Item): string {
  return sale.purchaseLimit ? t('sale.limitAll', { n: item.purchaseLimit, all: sale.purchaseLimit }) : t('sale.limit', { n: item.purchaseLimit });
}

/** The user's order of an item, if there is one. */
function Ordered({ sale, id }: { sale: Sale; id: string }) {
  const order = sale.viewer?.items.find((each) => each.item.id === id)?.order;
  if (!order) return null;
  return (
    <Link class="link relative z-10 text-sm" href={`/orders/${order.id}`}>
      {t(`status.${order.status}`)}
    </Link>
  );
}

function Quantity({ most, value, set }: { most: number; value: number; set: (n: number) => void }) {
  return (
    <label class="flex items-center justify-between gap-3">
      {t('sale.quantity')}
      <select class="field w-24" value={value} onChange={(event) => set(Number(event.currentTarget.value))}>
        {Array.from({ length: most }, (_, i) => (
          <option key={i}>{i + 1}</option>
        ))}
      </select>
    </label>
  );
}

/** The sale as a calendar file. */
function calendarOf(sale: Sale): string {
  const stamp = (iso: string): string => new Date(iso).toISOString().replace(/[-:]|\.\d+/g, '');
  const lines = [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//seckill//shop//EN',
    'BEGIN:VEVENT',
    `UID:${sale.id}`,
    `DTSTAMP:${stamp(sale.startsAt)}`,
    `DTSTART:${stamp(sale.startsAt)}`,
    `DTEND:${stamp(sale.endsAt)}`,
    `SUMMARY:${sale.title.replace(/[\\;,]/g, '\\$&')}`,
    `URL:${location.origin}/s/${sale.slug}`,
    'END:VEVENT',
    'END:VCALENDAR',
  ];
  return `data:text/calendar;charset=utf-8,${encodeURIComponent(lines.join('\r\n'))}`;
}

/** What can be prepared before the opening. */
function Prepare({ sale }: { sale: Sale }) {
  const phase = usePhase(sale);
  if (phase !== 'UPCOMING') return sale.requiresAddress && phase === 'LIVE' ? <Checklist sale={sale} /> : null;
  return (
    <div class="flex flex-wrap gap-3">
      <div class="basis-full">
        <Checklist sale={sale} />
      </div>
      <Remind sale={sale} />
      <a class="btn grow" href={calendarOf(sale)} download={`${sale.slug}.ics`}>
        {t('wait.calendar')}
      </a>
    </div>
  );
}

/** A reading of the server's clock that is less exact than this, in ms, is shown. */
const EXACT_MS = 100;

/** The server's clock, where it is known too inexactly for a start to the second. */
function Clock() {
  void second.value;
  const bound = reading.value?.bound;
  if (bound !== undefined && bound <= EXACT_MS) return null;
  return (
    <p class="notranslate text-sm text-soft tabular-nums" aria-hidden="true">
      {bound === undefined ? t('clock.unknown') : t('clock.server', { time: clockTime(now()), bound: Math.ceil(bound) })}
    </p>
  );
}

/** When the sale opens and ends. */
function Window({ sale }: { sale: Sale }) {
  const upcoming = usePhase(sale) === 'UPCOMING';
  return (
    <div class="grid gap-1 text-sm">
      <dl class="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt class="text-soft">{t('sale.opens')}</dt>
        <dd>
          <When at={sale.startsAt} zone />
        </dd>
        <dt class="text-soft">{t('sale.ends')}</dt>
        <dd>
          <When at={sale.endsAt} zone />
        </dd>
      </dl>
      {upcoming && <Clock />}
    </div>
  );
}

/** The choice between items, where there is more than one. */
function Items({ sale, chosen, choose }: { sale: Sale; chosen: string; choose: (id: string) => void }) {
  if (sale.items.length === 1) return <p class="head">{sale.items[0]!.goods.name}</p>;
  return (
    <fieldset class="grid gap-2">
      <legend class="sr-only">{t('sale.item')}</legend>
      {sale.items.map(({ id, goods, price, stock }) => (
        <label
          key={id}
          class="relative flex cursor-pointer items-center gap-x-3 rounded-xl border border-line bg-card p-2 pr-3 has-checked:border-ink has-checked:ring-1 has-checked:ring-ink has-focus-visible:outline-3 has-focus-visible:outline-accent"
        >
          <input type="radio" name="item" class="absolute inset-0 cursor-pointer opacity-0" checked={id === chosen} onChange={() => choose(id)} />
          <Picture goods={goods} class="size-14 shrink-0 rounded-lg" />
          <span class="grid min-w-0 grow">
            <span class="font-medium">{goods.name}</span>
            <span key={leftOf(stocks.of(id).value ?? stock)} class="text-sm text-soft">
              {t(`stock.${leftOf(stocks.of(id).value ?? stock)}`)}
            </span>
          </span>
          <Ordered sale={sale} id={id} />
          <strong class="numeral">{money(price)}</strong>
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
