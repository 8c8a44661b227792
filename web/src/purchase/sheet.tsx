/** The status sheet: what the status is, how long it lasts, what to press. At the foot of a phone, beside the sale on a desktop. */
import { useEffect, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { now } from '../api/clock';
import { connection } from '../api/client';
import { digits, money, t, times, waitText } from '../i18n/text';
import type { Item } from '@seckill/client/types';
import { Picture } from '../ui/bits';
import { Tick } from '../ui/icons';
import { LAST_MS, useLeft } from '../ui/countdown';
import type { Button } from './button';
import type { Status } from './status';

/** Buttons that do something when pressed. */
const ACTIVE: Button['kind'][] = ['sign-in', 'join', 'buy', 'pay', 'order', 'waitlist', 'enter', 'authorize'];
/** Buttons that are shown although they cannot be pressed: they say when they can. */
const SHOWN: Button['kind'][] = ['blocked'];
/** Buttons that show that something is under way. */
const BUSY: Button['kind'][] = ['checking', 'sending', 'queue'];

/** Whether pressing the button does something. */
export const isActive = (button: Button): boolean => ACTIVE.includes(button.kind);

interface LabelProps {
  button: Button;
  item: Item;
  quantity: number;
  /** Whether the sale is not open yet. */
  early: boolean;
  /** When the entries of the draw close, in ms; null = a rush. */
  closes: number | null;
  failed: boolean;
}

/** The words of the button. A button that costs money names the amount. */
function labelOf({ button, item, quantity, early, closes, failed }: LabelProps): string {
  if (failed && isActive(button)) return t('fault.again');
  const wanted = { amount: money(times(item.price, quantity)) };
  switch (button.kind) {
    case 'sign-in':
      if (closes !== null) return t(now() < closes ? 'draw.signIn' : 'draw.signInResult');
      if (early) return t('button.ready');
      return button.soldOut ? t('button.waitlist') : t('button.signIn', wanted);
    case 'buy':
    case 'wait': // in the last seconds, where one press will buy
      return t(closes === null ? 'button.buy' : 'draw.take', wanted);
    case 'checking':
      return t('check.title');
    case 'sending':
      return t(button.slow ? 'button.slow' : 'button.sending');
    case 'pay':
      return t('button.pay', { amount: money(button.order.total) });
    case 'none':
      return '';
    case 'blocked':
      return t('button.blocked', { time: waitText(button.until - now()) });
    default:
      return t(`button.${button.kind}`);
  }
}

/** The time left, in the second line of a button that pays. */
function Left({ until }: { until: number }) {
  const left = useLeft(until);
  return (
    <span class="notranslate block text-sm font-medium tabular-nums" aria-hidden="true">
      {t('order.payLeft', { time: digits(left, 'down') })}
    </span>
  );
}

/** Digits of the time left, in a ring that empties where the time is short and strict. */
function Timer({ until, strict }: { until: number; strict: boolean }) {
  const left = Math.max(0, useLeft(until));
  const whole = useRef({ until, ms: left });
  if (whole.current.until !== until) whole.current = { until, ms: left };
  const text = <span class={`notranslate numeral font-bold ${strict ? 'text-lg' : 'text-2xl'}`}>{digits(left, strict ? 'down' : 'up')}</span>;
  if (!strict || whole.current.ms > 120_000) return <span aria-hidden="true">{text}</span>;
  const share = Math.min(1, left / Math.max(whole.current.ms, 1));
  return (
    <span class="relative grid size-16 shrink-0 place-items-center" aria-hidden="true">
      <svg viewBox="0 0 64 64" class="absolute inset-0 -rotate-90">
        <circle cx="32" cy="32" r="28" fill="none" stroke-width="5" class="stroke-line" />
        <circle cx="32" cy="32" r="28" fill="none" stroke-width="5" pathLength={100} stroke-dasharray={`${share * 100} 100`} class="ring stroke-good" />
      </svg>
      {text}
    </span>
  );
}

/** A title, with the number of those ahead large. */
function Title({ title, ahead }: Pick<Status, 'title' | 'ahead'>) {
  const at = ahead === null ? -1 : title.indexOf(ahead);
  if (ahead === null || at < 0) return <>{title}</>;
  return (
    <>
      {title.slice(0, at)}
      <span class="notranslate numeral text-3xl leading-none">{ahead}</span>
      {title.slice(at + ahead.length)}
    </>
  );
}

const tones: Record<Status['tone'], string> = { plain: '', good: 'text-good', warn: 'text-warn', danger: 'text-danger' };

interface Props extends Omit<LabelProps, 'early'> {
  status: Status;
  startsAt: number;
  /** A request of the button is under way. */
  waiting: boolean;
  act: () => void;
  /** Below the button: what else can be done. */
  children?: ComponentChildren;
}

/** Sets the height of the sheet for the style sheet: a phone keeps the page clear of it, and what takes the focus is scrolled above it. */
function useHeight(sheet: { current: HTMLElement | null }): void {
  useEffect(() => {
    if (!('ResizeObserver' in globalThis)) return;
    const root = document.documentElement;
    const watch = new ResizeObserver(([entry]) => root.style.setProperty('--sheet', `${entry!.borderBoxSize[0]!.blockSize}px`));
    watch.observe(sheet.current!);
    return () => {
      watch.disconnect();
      root.style.removeProperty('--sheet');
    };
  }, []);
}

/** The sheet. */
export function Sheet({ status, button, waiting, act, startsAt, children, ...label }: Props) {
  const box = useRef<HTMLElement>(null);
  const waited = useRef(false);
  waited.current ||= now() < startsAt;
  useHeight(box);
  const active = isActive(button);
  const soon = button.kind === 'wait' && startsAt - now() <= LAST_MS; // where the button will be
  const shown = active || soon || SHOWN.includes(button.kind);
  const busy = BUSY.includes(button.kind) || waiting;
  const pay = button.kind === 'pay' && !label.failed;
  const offline = connection.value.state === 'retrying' && !navigator.onLine;
  const detail = offline ? t('sheet.offline') : status.detail;
  const waitedFor = status.quiet && waited.current; // the sheet keeps its height at the opening
  const said = waitedFor ? { ...status, title: t('sale.open'), tone: 'good' as const } : status;
  const text = labelOf({ ...label, button, early: now() < startsAt });
  return (
    <section ref={box} aria-label={t('sheet.label')} class="sheet" data-status={button.kind}>
      <div class="sheet-item items-center gap-3">
        <Picture goods={label.item.goods} class="size-[40px] shrink-0 rounded-lg" />
        <p class="line-clamp-1 min-w-0 grow font-medium">
          <bdi>{label.item.goods.name}</bdi>
          {label.quantity > 1 && ` × ${label.quantity}`}
        </p>
        <strong class="numeral shrink-0">{money(times(label.item.price, label.quantity))}</strong>
      </div>
      <div class={status.quiet && !waitedFor && !detail ? 'sr-only' : 'flow-root min-h-14 max-lg:min-h-[68px]'}>
        {status.until !== null && !pay && (
          <div class="float-right ml-3">
            <Timer until={status.until} strict={status.strict} />
          </div>
        )}
        <div aria-live="polite">
          <p
            key={said.title}
            dir="auto"
            class={`moment leading-snug font-bold ${pay ? 'flex items-center gap-2 text-xl' : 'text-lg'} ${tones[said.tone]}`}
            data-button={shown || busy ? undefined : button.kind}
            role={status.tone === 'danger' ? 'alert' : undefined}
          >
            {pay && <Tick size={24} />}
            <Title {...said} />
          </p>
          {detail && (
            <p key={detail} dir="auto" class={`text-sm ${offline ? 'text-warn' : 'text-soft'}`}>
              {detail}
            </p>
          )}
        </div>
      </div>
      {(shown || busy) && (
        <button
          type="button"
          class={`btn btn-big ${active ? 'btn-main' : ''}`}
          data-button={button.kind}
          aria-disabled={!active}
          aria-busy={busy}
          onClick={act}
        >
          {busy && <span class="spin" />}
          <span key={text}>
            {text}
            {pay && status.until !== null && <Left until={status.until} />}
          </span>
        </button>
      )}
      {children}
    </section>
  );
}
