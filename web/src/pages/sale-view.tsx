/** The layout of a sale's page. It sends no requests, so the preview uses it too. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { now, reading, second } from '../api/clock';
import { stocks } from '../api/stores';
import type { Card, Item, Phase, Sale, Stock } from '@seckill/client/types';
import { clockTime, isolate, moment, money, span, t } from '../i18n/text';
import { isOver, usePhase } from '../purchase/button';
import { altOf, shownLevel, PhaseChip, Picture, Price, StockBar, Title, DateTime } from '../ui/bits';
import { useTitle } from '../ui/title';
import { Opening } from '../ui/countdown';
import { Markdown } from './markdown';
import { Select, upTo } from '../ui/select';

/** Most units that the quantity field offers. */
const MOST_UNITS = 10;

interface Props {
  sale: Sale;
  item: Item;
  phase: Phase;
  stockOf: GlanceProps['stockOf'];
  choose: (id: string) => void;
  wanted: number;
  want: (n: number) => void;
  /** The status sheet. */
  sheet: ComponentChildren;
  /** What a buyer can get ready. */
  checklist: ComponentChildren;
  /** The switch for a reminder. */
  remind: ComponentChildren;
  /** Below everything else. */
  children?: ComponentChildren;
}

/** Most units of an item in one order. */
function mostOf(sale: Sale, item: Item): number {
  const room = sale.viewer?.items.find((each) => each.item.id === item.id)?.remainingLimit;
  return Math.max(1, Math.min(room ?? item.purchaseLimit, limitOfOrder(sale, item)));
}

/** Most units of an item in a buyer's first order. */
const limitOfOrder = (sale: Sale, item: Item): number => Math.min(item.purchaseLimit, sale.purchaseLimit ?? MOST_UNITS, MOST_UNITS);

/** How many units of an item are bought: as many as wanted, within the limits. */
export const quantityOf = (sale: Sale, item: Item, wanted: number): number => Math.min(wanted, mostOf(sale, item));

/** The tokens of style.css that the accent of a sale replaces; without one, those of the installation stay. */
function styleOf(accent: Sale['accent']): Record<string, string> | undefined {
  if (!accent) return undefined;
  const pair = (shade: 'fill' | 'press' | 'text'): string => `light-dark(${accent.light[shade]}, ${accent.dark[shade]})`;
  return { '--color-fill': pair('fill'), '--color-press': pair('press'), '--color-accent': pair('text') };
}

/** The picture beside the price with what follows it; below, the children. */
const LAYOUT = 'grid grid-cols-1 items-start gap-4 max-sm:first:-mt-6 sm:gap-6 lg:grid-cols-[minmax(0,1fr)_24rem] lg:grid-rows-[auto_1fr] lg:gap-x-8';

interface GlanceProps {
  sale: Card & Partial<Pick<Sale, 'viewer'>>;
  item: Card['items'][number];
  phase: Phase;
  stockOf: (item: Card['items'][number]) => Stock;
  choose: (id: string) => void;
  /** Below the choice between items. */
  children: ComponentChildren;
}

/** What the list of sales knows already: picture, title, price, what is left, the items. */
function Glance({ sale, item, phase, stockOf, choose, children }: GlanceProps) {
  return (
    <>
      <div class="relative -mx-4 overflow-hidden sm:mx-0 sm:rounded-2xl">
        <Picture goods={item.goods} alt={altOf(item.goods)} class="aspect-[4/3] max-h-[34dvh] w-full lg:max-h-[60dvh]" />
        <Opening startsAt={Date.parse(sale.startsAt)} upcoming={phase === 'UPCOMING'} />
        {phase !== 'UPCOMING' && (
          <span class="absolute top-3 left-3">
            <PhaseChip phase={phase} draw={sale.mode === 'DRAW'} />
          </span>
        )}
      </div>
      <div class="grid min-w-0 content-start gap-4 lg:col-start-2 lg:row-span-2 lg:row-start-1 lg:self-stretch">
        <div class="grid gap-2">
          <Title><bdi>{sale.title}</bdi></Title>
          {sale.items.length === 1 && <p class="head"><bdi>{item.goods.name}</bdi></p>}
          <Price now={item.price} usual={item.goods.listPrice} large />
          {!isOver(phase) && <StockBar stock={stockOf(item)} draw={sale.mode === 'DRAW'} asOf />}
        </div>
        {sale.items.length > 1 && <Items sale={sale} chosen={item.id} choose={choose} stockOf={stockOf} />}
        {children}
      </div>
    </>
  );
}

/** The page of a sale that is known from the list only, until its own data is there. */
export function SaleOutline({ sale }: { sale: Card }) {
  useTitle(sale.title);
  const phase = usePhase(sale);
  const item = sale.items[0];
  if (!item) return <Title><bdi>{sale.title}</bdi></Title>;
  return (
    <div class={LAYOUT} aria-busy="true">
      <Glance sale={sale} item={item} phase={phase} stockOf={({ id, stock }) => stocks.of(id).value ?? stock} choose={() => {}}>
        <div class="sheet">
          <p class="flex min-h-32 items-center gap-3 text-soft" role="status">
            <span class="spin" />
            {t('page.loading')}
          </p>
        </div>
      </Glance>
      <div class="grid gap-3" aria-hidden="true">
        {['h-24', 'h-4 w-2/3', 'h-4 w-1/2'].map((size) => <div key={size} class={`rounded-xl bg-sunk ${size}`} />)}
      </div>
    </div>
  );
}

/** The page of a loaded sale: the picture, the price with the choice and the status sheet, then times, rules and texts. */
export function SaleView({ sale, item, phase, stockOf, choose, wanted, want, sheet, checklist, remind, children }: Props) {
  const most = mostOf(sale, item);
  return (
    <div style={styleOf(sale.accent)} class={LAYOUT}>
      <Glance sale={sale} item={item} phase={phase} stockOf={stockOf} choose={choose}>
        {limitOfOrder(sale, item) > 1 && !isOver(phase) && <Quantity most={most} value={quantityOf(sale, item, wanted)} set={want} />}
        {sheet}
      </Glance>
      <div class="grid min-w-0 gap-6">
        <div class="card grid gap-4 p-4">
          <Window sale={sale} phase={phase} />
          <p class="text-sm text-soft">
            {limitOf(sale, item)} · {t('sale.window', { time: span(sale.paymentWindowSeconds) })}
          </p>
          <Prepare sale={sale} phase={phase} checklist={checklist} remind={remind} />
        </div>
        <Texts item={item} sale={sale} />
        {children}
      </div>
    </div>
  );
}

/** The limits of a sale and an item in words. */
function limitOf(sale: Sale, item: Item): string {
  const limit = sale.purchaseLimit ? t('sale.limitAll', { n: item.purchaseLimit, all: sale.purchaseLimit }) : t('sale.limit', { n: item.purchaseLimit });
  return [limit, ...sale.limitBy.flatMap((kind) => (kind === 'ACCOUNT' ? [] : [t(`sale.limitBy.${kind}`)]))].join(t('sale.limitBy.and'));
}

/** The user's order of an item, if there is one. */
function Ordered({ sale, id }: { sale: GlanceProps['sale']; id: string }) {
  const order = sale.viewer?.items.find((each) => each.item.id === id)?.order;
  if (!order) return null;
  return (
    <Link class="link relative z-10" href={`/orders/${order.id}`}>
      {t(`status.${order.status}`)}
    </Link>
  );
}

/** The quantity. It keeps its place where one unit is all that is left to the buyer. */
function Quantity({ most, value, set }: { most: number; value: number; set: (n: number) => void }) {
  return (
    <label class="flex items-center justify-between gap-3">
      {t('sale.quantity')}
      <Select class="w-24" value={String(value)} change={(next) => set(Number(next))} choices={upTo(most, String)} />
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
function Prepare({ sale, phase, checklist, remind }: { sale: Sale; phase: Phase } & Pick<Props, 'checklist' | 'remind'>) {
  if (phase !== 'UPCOMING') return sale.requiresAddress && phase === 'LIVE' ? <>{checklist}</> : null;
  return (
    <div class="flex flex-wrap gap-3">
      <div class="basis-full">{checklist}</div>
      {remind}
      <a class="btn grow" href={calendarOf(sale)} download={`${sale.slug}.ics`}>
        {t('wait.calendar')}
      </a>
    </div>
  );
}

/** A reading of the server's clock that is less exact than this, in ms, is shown. */
const EXACT_MS = 100;

/** The server's clock, shown while its error is above EXACT_MS. The line always takes space: the clock is read after the first paint. */
function Clock() {
  void second.value;
  const bound = reading.value?.bound ?? 0;
  return (
    <p class="notranslate min-h-5 text-sm text-soft tabular-nums" aria-hidden="true">
      {bound > EXACT_MS && t('clock.server', { time: clockTime(now()), bound: Math.ceil(bound) })}
    </p>
  );
}

/** The name of a group of buyers. */
const groupOf = ({ kind, name }: Pick<Sale['access'][number], 'kind' | 'name'>): string =>
  name === null ? t(kind === 'VERIFIED_CONTACT' ? 'access.VERIFIED_CONTACT' : 'access.ALL') : isolate(name);

/** Who may buy from when, and what counts for the user. */
function accessText({ access, viewer }: Sale): string {
  const rules = access.map((rule) => t('access.from', { who: groupOf(rule), time: moment(rule.from) }));
  if (viewer?.access) rules.push(viewer.access.rule ? t('access.you', { who: groupOf(viewer.access.rule) }) : t('access.none'));
  return rules.join(' · ');
}

/** When the sale opens and ends. */
function Window({ sale, phase }: { sale: Sale; phase: Phase }) {
  return (
    <div class="grid gap-1 text-sm">
      <dl class="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt class="text-soft">{t('sale.opens')}</dt>
        <dd>
          <DateTime at={sale.startsAt} zone />
        </dd>
        {sale.access.length > 0 && (
          <>
            <dt class="text-soft">{t('access.title')}</dt>
            <dd>{accessText(sale)}</dd>
          </>
        )}
        <dt class="text-soft">{t('sale.ends')}</dt>
        <dd>
          <DateTime at={sale.endsAt} zone />
        </dd>
      </dl>
      {phase === 'UPCOMING' && <Clock />}
    </div>
  );
}

/** The choice between items. */
function Items({ sale, chosen, choose, stockOf }: Pick<GlanceProps, 'sale' | 'choose' | 'stockOf'> & { chosen: string }) {
  return (
    <fieldset class="grid gap-2">
      <legend class="sr-only">{t('sale.item')}</legend>
      {sale.items.map((each) => {
        const { id, goods, price } = each;
        const left = shownLevel(stockOf(each));
        return (
          <label
            key={id}
            class="relative flex cursor-pointer flex-wrap items-center gap-x-3 rounded-xl border border-line bg-card p-2 pr-3 has-checked:border-ink has-checked:ring-1 has-checked:ring-ink has-focus-visible:outline-3 has-focus-visible:outline-accent"
          >
            <input type="radio" name="item" class="absolute inset-0 cursor-pointer opacity-0" checked={id === chosen} onChange={() => choose(id)} />
            <Picture goods={goods} class="size-14 shrink-0 rounded-lg" />
            <span class="grid min-w-24 grow basis-0">
              <span class="font-medium"><bdi>{goods.name}</bdi></span>
              <span class="flex flex-wrap gap-x-2 text-sm text-soft">
                <span key={left}>{t(sale.mode === 'DRAW' && left === 'SOLD_OUT' ? 'draw.givenShort' : `stock.${left}`)}</span>
                <Ordered sale={sale} id={id} />
              </span>
            </span>
            <strong class="numeral">{money(price)}</strong>
          </label>
        );
      })}
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
