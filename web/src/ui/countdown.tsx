import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { now, second } from '../api/clock';
import { digits, parts, t, type Rounding } from '../i18n/text';
import type { Key } from '../i18n/en';
import { Icon } from './icons';
import { readOut } from './live-region';

/** Texts to read out when so many seconds are left. */
export type Thresholds = Record<number, Key>;

/** The thresholds of an opening sale. */
export const OPENING: Thresholds = { 600: 'sale.tick10m', 60: 'sale.tick1m', 10: 'sale.tick10s' };

/** The threshold in seconds that lies in (left, before], if any. */
export function crossed(thresholds: Thresholds, before: number, left: number): number | null {
  return Object.keys(thresholds).map(Number).find((at) => at < before && at >= left && left > 0) ?? null;
}

/** Milliseconds until an instant of server time; renders again every second. */
export function useLeft(until: number): number {
  void second.value;
  return until - now();
}

/** Reads out the thresholds as they pass. */
export function useThresholds(left: number, thresholds: Thresholds): void {
  const before = useRef(left);
  const at = crossed(thresholds, Math.ceil(before.current / 1000), Math.ceil(left / 1000));
  useEffect(() => {
    if (at !== null) readOut(t(thresholds[at]!));
  }, [at]);
  before.current = left;
}

/** A span that ticks. It is hidden from screen readers. */
export function Ticking({ until, rounding = 'up' }: { until: number; rounding?: Rounding }) {
  return (
    <span class="notranslate tabular-nums" aria-hidden="true">
      {digits(useLeft(until), rounding)}
    </span>
  );
}

/** The last seconds before an opening, in ms, are counted in a ring. */
export const LAST_MS = 10_000;

/**
 * The time to the opening, large over the picture of the sale. At zero the ring of the last seconds closes in the colour of the button, and
 * the shade lifts from the picture. It is hidden from screen readers, which get the thresholds and the date.
 */
export function Opening({ startsAt, upcoming }: { startsAt: number; upcoming: boolean }) {
  const waited = useRef(false);
  waited.current ||= upcoming;
  const lifted = useSignal(false);
  const left = useLeft(startsAt);
  if (!waited.current || lifted.value) return null;
  const { days, hours, minutes, seconds } = parts(left);
  const two = (n: number): string => String(n).padStart(2, '0');
  const last = !upcoming || left <= LAST_MS;
  return (
    <div
      class={`notranslate absolute inset-0 grid place-content-center justify-items-center gap-1 bg-shade text-white ${upcoming ? '' : 'lift'}`}
      data-opening={upcoming ? 'counts' : 'open'}
      aria-hidden="true"
      onAnimationEnd={() => (lifted.value = true)}
    >
      {!last && (
        <span class="font-semibold">
          {t('sheet.upcoming')} {days > 0 && t('time.days', { n: days })}
        </span>
      )}
      {last ? (
        <span key="last" class="numeral relative grid size-40 place-items-center text-[4rem] leading-none">
          <svg viewBox="0 0 160 160" class="absolute inset-0 -rotate-90" fill="none" stroke-width="8">
            <circle cx="80" cy="80" r="74" class="stroke-white/25" />
            <circle
              cx="80"
              cy="80"
              r="74"
              pathLength={100}
              stroke-dasharray={`${upcoming ? Math.max(0, (Math.ceil(left / 1000) - 1) * 10) : 100} 100`}
              class={upcoming ? 'ring stroke-white' : 'fill-fill stroke-fill'}
            />
          </svg>
          <span key={upcoming ? seconds : 'open'} class="relative">{upcoming ? seconds : <Icon name="check" size={64} />}</span>
        </span>
      ) : (
        <span key="digits" class="numeral text-[min(4rem,18vw)] leading-none lg:text-[5.5rem]">{[...(days || hours ? [hours] : []), minutes, seconds].map(two).join(':')}</span>
      )}
    </div>
  );
}
