/** Small components of several pages. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { lostAt } from '../api/client';
import type { LoadState } from '../api/load';
import type { Fault } from '@seckill/client/fault';
import type { Card, Money, Phase, Stock } from '@seckill/client/types';
import { faultText, clockTime, count, moment, money, saved, t } from '../i18n/text';
import { Icon } from './icons';
import { useTitle } from './title';

/** The time zone of the sales' opening times. */
const SALE_ZONE = 'Asia/Shanghai';

/** Shown while a page loads. */
export function Loading() {
  return (
    <p class="page flex items-center gap-3 text-soft" role="status" data-waits>
      <span class="spin" />
      {t('page.loading')}
    </p>
  );
}

/** A fault with a button that tries again. */
export function FaultMessage({ fault, again }: { fault: Fault; again: () => void }) {
  return (
    <div class="note" role="alert">
      <p>{faultText(fault)}</p>
      {fault.errorId && <p class="text-sm text-soft">{t('fault.id', { id: fault.errorId })}</p>}
      <button class="btn mt-3" onClick={again}>
        {t('fault.again')}
      </button>
    </div>
  );
}

/** What a page shows until its data is there: also when there is none, unless `missing` says otherwise. */
export function Unready({ page, again, missing = <Loading />, inset }: {
  page: Exclude<LoadState<unknown>, { state: 'ready' }>;
  again: () => void;
  missing?: ComponentChildren;
  /** Whether it is a whole page, with its margins. */
  inset?: boolean;
}) {
  switch (page.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return inset ? <div class="page"><FaultMessage fault={page.fault} again={again} /></div> : <FaultMessage fault={page.fault} again={again} />;
    case 'missing':
      return <>{missing}</>;
  }
}

/** Shows that the data may be old. */
export function Stale({ fault, again }: { fault: Fault | null; again: () => void }) {
  if (!fault) return null;
  return (
    <p class="note mb-4 flex flex-wrap items-center gap-3 py-2 text-sm" role="status">
      {t('fault.stale', { why: faultText(fault) })}
      <button class="link" onClick={again}>
        {t('fault.again')}
      </button>
    </p>
  );
}

/** Loads more of a list. */
export function More({ next, busy }: { next: () => void; busy: boolean }) {
  return (
    <button class="btn mx-auto mt-4 flex" aria-disabled={busy} onClick={next}>
      {busy && <span class="spin" />}
      {t('sales.more')}
    </button>
  );
}

/** A heading that takes the focus when its page opens. */
export function Title({ children }: { children: ComponentChildren }) {
  return (
    <h1 class="title" tabIndex={-1}>
      {children}
    </h1>
  );
}

/** A page that does not exist, with a link to the sales. */
function NotThere({ what }: { what: string }) {
  return (
    <>
      <Title>{what}</Title>
      <Link href="/" class="link mt-4 inline-block">
        {t('sale.toList')}
      </Link>
    </>
  );
}

/** Nothing at this address. */
export function NotFound() {
  useTitle(t('page.missing'));
  return <NotThere what={t('page.missing')} />;
}

/** When to read an unknown sale again, in ms. */
const UNKNOWN_MS = 1_500;

/** An unknown sale. A new sale reaches every server within a second, so it is read once more. */
export function SaleNotFound({ again }: { again: () => void }) {
  useEffect(() => {
    const timer = setTimeout(again, UNKNOWN_MS);
    return () => clearTimeout(timer);
  }, []);
  return <NotThere what={t('sale.missing')} />;
}

/** The price, with the list price and the saving where the list price is higher. */
export function Price({ now: price, usual, large }: { now: Money; usual: Money; large?: boolean }) {
  const off = saved(price, usual);
  return (
    <p class="flex flex-wrap items-baseline gap-x-2">
      <span class="sr-only">{t('price.sale')}</span>
      <strong class={`numeral ${large ? 'text-4xl' : 'text-xl'}`}>{money(price)}</strong>
      {off && (
        <>
          <span class="sr-only">{t('price.list')}</span>
          <s class="text-soft tabular-nums">{money(usual)}</s>
          <span class="text-sm font-medium text-good">{t('price.off', { amount: money(off) })}</span>
        </>
      )}
    </p>
  );
}

/** Up to this many units are shown as low, however small the total is. */
const FEW = 3;

/** The level to show: FEW or fewer units are LOW, even if the server says otherwise, unless none of them is gone. */
export function shownLevel({ level, remaining, total }: Pick<Stock, 'level' | 'remaining' | 'total'>): Stock['level'] {
  if (level !== 'SOLD_OUT' && remaining !== null && remaining === total) return 'PLENTY';
  return level !== 'SOLD_OUT' && remaining !== null && remaining <= FEW ? 'LOW' : level;
}

/** What is left, in words; with a bar where the numbers are public. `asOf` adds the time of the last reading while no newer one arrives. */
export function StockBar({ stock, draw, asOf }: { stock: Stock; draw?: boolean; asOf?: boolean }) {
  const { remaining, total } = stock;
  const level = shownLevel(stock);
  const known = remaining !== null && total !== null && total > 0;
  const read = asOf && lostAt.value !== null ? Math.max(lostAt.value, Date.parse(stock.updatedAt)) : null;
  return (
    <div class="text-sm">
      {known && (
        <div class="mb-1 h-1 overflow-hidden rounded-full bg-line">
          <div
            class={`h-full rounded-full transition-[width] ${level === 'LOW' ? 'bg-warn' : 'bg-ink'}`}
            style={{ width: `${Math.max((remaining / total) * 100, remaining ? 2 : 0)}%` }}
          />
        </div>
      )}
      <p class="flex flex-wrap justify-between gap-x-3 text-soft">
        <span key={`${level} ${remaining} ${total}`} data-stock={remaining ?? level}>
          {t(draw && level === 'SOLD_OUT' ? 'draw.given' : `stock.${level}`)}
          {known && ` · ${t('stock.of', { left: count(remaining), total: count(total) })}`}
        </span>
        {read !== null && <span key={read} class="tabular-nums">{t('stock.asOf', { time: clockTime(read) })}</span>}
      </p>
    </div>
  );
}

const tones: Partial<Record<Phase, string>> = { LIVE: 'border-ink bg-ink text-page', PAUSED: 'text-warn' };

/** The phase of a sale. */
export function PhaseChip({ phase, draw }: { phase: Phase; draw?: boolean }) {
  return <span key={phase} class={`chip ${tones[phase] ?? 'text-soft'}`}>{t(draw && phase === 'SOLD_OUT' ? 'draw.givenShort' : `phase.${phase}`)}</span>;
}

/** An instant in the browser's time zone, with the sale's time zone where that differs. */
export function DateTime({ at, zone }: { at: string; zone?: boolean }) {
  const here = moment(at);
  const elsewhere = zone && moment(at, { timeZone: SALE_ZONE }) !== here;
  return (
    <time dateTime={at} class="tabular-nums">
      {here}
      {elsewhere && <span class="text-soft">{t('time.china', { time: moment(at, { timeZone: SALE_ZONE }) })}</span>}
    </time>
  );
}

type Goods = Card['items'][number]['goods'];

/** The alternative text of a picture that stands alone. */
export const altOf = ({ imageAlt, name }: Pick<Goods, 'name' | 'imageAlt'>): string => imageAlt ?? name;

/** The picture of a product; a coloured tile with its first letter where there is none. Without `alt` it is decorative, as beside the name; in long lists it loads when it is near the screen. */
export function Picture({ goods, alt = '', inList = false, class: size }: { goods: Pick<Goods, 'id' | 'name' | 'imageUrl'>; alt?: string; inList?: boolean; class: string }) {
  if (goods.imageUrl) {
    return <img src={goods.imageUrl} alt={alt} loading={inList ? 'lazy' : undefined} decoding={inList ? 'async' : undefined} class={`bg-sunk object-cover ${size}`} width="400" height="400" />;
  }
  const hue = [...goods.id].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 360, 7);
  return (
    <svg viewBox="0 0 100 100" class={size} preserveAspectRatio="xMidYMid slice" aria-hidden="true">
      <rect width="100" height="100" fill={`hsl(${hue} 42% 38%)`} />
      <circle cx="82" cy="16" r="46" fill={`hsl(${(hue + 28) % 360} 52% 50%)`} opacity=".55" />
      <circle cx="10" cy="96" r="34" fill={`hsl(${(hue + 330) % 360} 50% 26%)`} opacity=".6" />
      <text x="50" y="64" text-anchor="middle" font-size="42" font-weight="700" fill="#fff">
        {[...goods.name][0]}
      </text>
    </svg>
  );
}

/** A check mark with words. */
export function SuccessMessage({ children }: { children: ComponentChildren }) {
  return (
    <p class="flex items-center gap-2 font-medium text-good">
      <Icon name="check" />
      {children}
    </p>
  );
}
