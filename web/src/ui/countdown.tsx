import { useEffect, useRef } from 'preact/hooks';
import { now, second } from '../api/clock';
import { digits, parts, t, type Rounding } from '../i18n/text';
import type { Key } from '../i18n/en';
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

/** Large ticking digits. They are hidden from screen readers, which read the date beside them. */
export function Tiles({ until, rounding = 'up' }: { until: number; rounding?: Rounding }) {
  const { days, hours, minutes, seconds } = parts(useLeft(until), rounding);
  const cells = [hours, minutes, seconds];
  return (
    <span class="inline-flex items-center gap-1 notranslate font-bold tabular-nums" aria-hidden="true">
      {days > 0 && <span class="mr-1">{t('time.days', { n: days })}</span>}
      {cells.map((n, i) => (
        <>
          {i > 0 && <span class="text-soft">:</span>}
          <span class="min-w-9 rounded-lg bg-ink px-1.5 py-1 text-center text-page">{String(n).padStart(2, '0')}</span>
        </>
      ))}
    </span>
  );
}
