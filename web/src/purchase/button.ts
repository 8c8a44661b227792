/** The state of the main button, from the server's action, the clock and the attempt under way. */
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { now, second } from '../api/clock';
import { tasks } from '../api/stores';
import { t } from '../i18n/text';
import type { Action, Phase, Sale, Stock, Viewer } from '@seckill/client/types';
import type { Attempt, Path } from '@seckill/client/purchase';

/** The button. */
export type Button =
  | { kind: 'sign-in'; soldOut?: true }
  | { kind: 'wait' }
  | { kind: 'join' }
  | { kind: 'joined' }
  | { kind: 'buy' }
  | { kind: 'checking' }
  | { kind: 'sending'; slow: boolean }
  | { kind: 'queue'; delayed: boolean }
  | { kind: 'room' }
  | { kind: 'pay'; order: NonNullable<Viewer['order']> }
  | { kind: 'order'; order: NonNullable<Viewer['order']> }
  | { kind: 'waitlist' }
  | { kind: 'waiting' }
  | { kind: 'none'; reason: string | null; phase: Phase };

/** What the button depends on. */
export interface Situation {
  sale: Sale;
  /** The chosen item. */
  itemId: string;
  /** Its stock. */
  stock: Stock;
  signedIn: boolean;
  attempt: Attempt;
  /** Whether a captcha was answered before the waiting room of the sale was open. */
  verified?: boolean;
  /** Server time in ms. */
  now: number;
}

/** The draw can be joined this long before the opening, in ms: its captcha expires after five minutes. */
export const DRAW_MS = 240_000;

/** Whether a phase is final. */
export const isOver = (phase: Phase): boolean => phase === 'ENDED' || phase === 'CANCELLED';

/** The phase by the clock: a sale opens and ends on time, also where the push is late. */
export function phaseAt(sale: Pick<Sale, 'phase' | 'startsAt' | 'endsAt'>, now: number): Phase {
  if (isOver(sale.phase)) return sale.phase;
  if (now >= Date.parse(sale.endsAt)) return 'ENDED';
  if (sale.phase === 'UPCOMING' && now >= Date.parse(sale.startsAt)) return 'LIVE';
  return sale.phase;
}

/** The phase by the clock, for a component: it renders again when the phase changes, not every second. */
export function usePhase(sale: Pick<Sale, 'phase' | 'startsAt' | 'endsAt'>): Phase {
  return useMemo(() => computed(() => (second.value, phaseAt(sale, now()))), [sale]).value;
}

/** What the user may do: the server's answer, corrected by the clock, else derived. */
export function actionOf({ sale, stock, signedIn, now }: Situation): Action {
  const phase = phaseAt(sale, now);
  const said = signedIn ? sale.viewer?.action : null;
  if (said === 'WAIT' && phase === 'LIVE') return 'BUY';
  if (said === 'BUY' && phase === 'ENDED') return 'NONE';
  if (said) return said;
  switch (phase) {
    case 'CANCELLED':
    case 'ENDED':
    case 'PAUSED':
      return 'NONE';
    case 'SOLD_OUT':
      return signedIn ? 'NONE' : 'SIGN_IN';
    case 'UPCOMING':
      return signedIn ? 'WAIT' : 'SIGN_IN';
    case 'LIVE':
      if (!signedIn) return 'SIGN_IN';
      return stock.level === 'SOLD_OUT' ? 'NONE' : 'BUY';
  }
}

/** The offer of the waitlist for an item, as a path; null where there is none. */
export function offerOf(sale: Sale, itemId: string): Path | null {
  const entry = sale.viewer?.waitlistEntry;
  if (entry?.status !== 'OFFERED' || entry.item.id !== itemId || !entry.offerExpiresAt) return null;
  return { token: entry.id, expiresAt: entry.offerExpiresAt };
}

/** The button of the waitlist of the chosen item. */
function waitlistOf({ sale, itemId }: Situation): Button {
  const entry = sale.viewer?.waitlistEntry;
  return { kind: entry?.status === 'WAITING' && entry.item.id === itemId ? 'waiting' : 'waitlist' };
}

/** The button of an item where the newest order is of another one; null where that order decides. */
function besideOrder({ sale, itemId, stock }: Situation, ordered: string, phase: Phase): Button | null {
  const mine = sale.viewer?.items.find(({ item }) => item.id === itemId);
  if (ordered === itemId || !mine) return null;
  if (mine.order) return { kind: 'none', reason: t(`status.${mine.order.status}`), phase };
  return phase === 'LIVE' && stock.level !== 'SOLD_OUT' ? { kind: 'buy' } : { kind: 'none', reason: null, phase };
}

/** The button for a situation. */
export function buttonOf(at: Situation): Button {
  const { sale, attempt, signedIn } = at;
  if (signedIn && attempt.step === 'check') return { kind: 'checking' };
  if (signedIn && attempt.step === 'sending') return { kind: 'sending', slow: attempt.slow };
  if (signedIn && attempt.step === 'queued') return { kind: 'queue', delayed: tasks.of(attempt.taskId).value?.delayed ?? false };
  if (signedIn && attempt.step === 'room') return { kind: phaseAt(sale, at.now) === 'UPCOMING' ? 'joined' : 'room' };
  if (signedIn && attempt.step === 'admitted' && attempt.itemId === at.itemId) return { kind: 'buy' };
  const action = actionOf(at);
  const order = sale.viewer?.order ?? null;
  const phase = phaseAt(sale, at.now);
  const none: Button = { kind: 'none', reason: sale.viewer?.disabledReason ?? null, phase };
  switch (action) {
    case 'SIGN_IN':
      return at.stock.level === 'SOLD_OUT' && phase !== 'UPCOMING' ? { kind: 'sign-in', soldOut: true } : { kind: 'sign-in' };
    case 'WAIT':
      return { kind: Date.parse(sale.startsAt) - at.now < DRAW_MS && !at.verified ? 'join' : 'wait' };
    case 'BUY':
      return at.stock.level === 'SOLD_OUT' && !offerOf(sale, at.itemId) ? waitlistOf(at) : { kind: 'buy' };
    case 'WATCH_QUEUE':
      return { kind: 'queue', delayed: sale.viewer?.orderTask?.delayed ?? false };
    case 'PAY':
    case 'VIEW_ORDER':
      if (!order) return none;
      return besideOrder(at, order.item.id, phase) ?? { kind: action === 'PAY' ? 'pay' : 'order', order };
    case 'IN_WAITING_ROOM': // of another item: this one can be bought
      if (sale.viewer?.queueTicket?.item.id === at.itemId) return { kind: phase === 'UPCOMING' ? 'joined' : 'room' };
      return at.stock.level === 'SOLD_OUT' || phase !== 'LIVE' ? none : { kind: 'buy' };
    case 'JOIN_WAITLIST':
    case 'ON_WAITLIST':
      return waitlistOf(at);
    case 'NONE':
      return none;
  }
}
