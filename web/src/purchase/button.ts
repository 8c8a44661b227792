/** The state of the main button, from the server's action, the clock and the attempt under way. */
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { now, second } from '../api/clock';
import { tasks } from '../api/stores';
import { t } from '../i18n/text';
import type { Action, Bought, Entry, Phase, Sale, Stock } from '@seckill/client/types';
import type { Attempt, Path } from '@seckill/client/purchase';
import { shownFailure, waitsUntil } from './refusal';

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
  | { kind: 'pay'; order: Bought }
  | { kind: 'order'; order: Bought }
  | { kind: 'blocked'; until: number }
  | { kind: 'waitlist' }
  | { kind: 'waiting' }
  | { kind: 'enter' }
  | { kind: 'authorize' }
  | { kind: 'entered' }
  | { kind: 'none'; reason: string | null; phase: Phase };

/** What the button depends on. */
export interface Situation {
  sale: Sale;
  /** The chosen item. */
  itemId: string;
  /** Its stock. */
  stock: Stock;
  /** How many units are bought. */
  quantity: number;
  signedIn: boolean;
  attempt: Attempt;
  /** Whether a captcha was answered before the waiting room of the sale was open. */
  verified?: boolean;
  /** Server time in ms. */
  now: number;
  /** When the viewer of the sale was read, in ms of server time. */
  readAt: number;
}

/** Whether a phase is final. */
export const isOver = (phase: Phase): boolean => phase === 'ENDED' || phase === 'CANCELLED';

/** The phase by the clock: a sale opens and ends on time, also where the push is late. */
export function phaseAt(sale: Pick<Sale, 'phase' | 'startsAt' | 'endsAt'>, now: number): Phase {
  if (isOver(sale.phase)) return sale.phase;
  if (now >= Date.parse(sale.endsAt)) return 'ENDED';
  if (sale.phase === 'UPCOMING' && now >= Date.parse(sale.startsAt)) return 'LIVE';
  return sale.phase;
}

/** From when the user may buy: their own time under the access rules of the sale, else its opening. */
export const opensFor = ({ startsAt, viewer }: Pick<Sale, 'startsAt' | 'viewer'>): number => Date.parse(viewer?.access?.from ?? startsAt);

/** The phase by the clock, for a component: it renders again when the phase changes, not every second. */
export function usePhase(sale: Pick<Sale, 'phase' | 'startsAt' | 'endsAt'>): Phase {
  return useMemo(() => computed(() => (second.value, phaseAt(sale, now()))), [sale]).value;
}

/** Whether the draw can be joined. */
const drawOpen = ({ drawOpensAt }: Sale, now: number): boolean => drawOpensAt !== null && now >= Date.parse(drawOpensAt);

/** What the user may do: the server's answer, corrected by the clock, else derived. */
export function actionOf({ sale, stock, signedIn, now }: Situation): Action {
  const phase = phaseAt(sale, now);
  const said = signedIn ? sale.viewer?.action : null;
  if (said === 'WAIT' && phase === 'LIVE' && now >= opensFor(sale)) return sale.mode === 'DRAW' ? 'ENTER_DRAW' : 'BUY';
  if ((said === 'BUY' || said === 'WAIT' || said === 'ENTER_DRAW') && (phase === 'PAUSED' || isOver(phase))) return 'NONE';
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
      if (sale.mode === 'DRAW') return 'ENTER_DRAW';
      return stock.level === 'SOLD_OUT' ? 'NONE' : 'BUY';
  }
}

/** The offer of the waitlist for an item, as a path; null where there is none. */
export function offerOf(sale: Sale, itemId: string): Path | null {
  const entry = entryOf(sale, itemId);
  if (entry?.status !== 'OFFERED' || !entry.offerExpiresAt) return null;
  return { token: entry.id, expiresAt: entry.offerExpiresAt };
}

/** The user's open waitlist entry for an item; null where there is none. */
export function entryOf(sale: Sale, itemId: string): Entry | null {
  return sale.viewer?.items.find(({ item }) => item.id === itemId)?.waitlistEntry ?? null;
}

/** When the entries of a draw close, in ms; null for a rush. */
export const closesAt = (sale: Pick<Sale, 'mode' | 'entriesCloseAt'>): number | null => (sale.mode === 'DRAW' ? Date.parse(sale.entriesCloseAt!) : null);

/** Whether the entries of a draw are closed, by the clock. */
export const entriesClosed = ({ entriesCloseAt }: Pick<Sale, 'entriesCloseAt'>, now: number): boolean => entriesCloseAt !== null && now >= Date.parse(entriesCloseAt);

/** The button of an item where an order of another one, or another waiting room, decides nothing: what the user may do with this item. */
function besideOther(at: Situation, phase: Phase): Button {
  const { sale, itemId, stock } = at;
  const mine = sale.viewer?.items.find(({ item }) => item.id === itemId);
  const nothing: Button = { kind: 'none', reason: null, phase };
  if (mine?.order) return { kind: mine.order.status === 'PENDING_PAYMENT' ? 'pay' : 'order', order: mine.order };
  if (offerOf(sale, itemId)) return { kind: 'buy' };
  const entry = entryOf(sale, itemId);
  if (entry?.status === 'ENTERED') return { kind: entry.card === 'DUE' && !entriesClosed(sale, at.now) ? 'authorize' : 'entered' };
  if (entry) return { kind: 'waiting' };
  if (phase !== 'LIVE' && phase !== 'SOLD_OUT') return nothing;
  if (sale.mode === 'DRAW' && entriesClosed(sale, at.now)) return { ...nothing, reason: t('error.ENTRIES_CLOSED') };
  if (mine?.remainingLimit === 0 && sale.purchaseLimit) return { ...nothing, reason: t('error.PURCHASE_LIMIT_REACHED.used', { n: sale.purchaseLimit }) };
  if (sale.mode === 'DRAW') return { kind: 'enter' };
  return { kind: stock.level === 'SOLD_OUT' ? 'waitlist' : 'buy' };
}

/** The button for a situation. */
export function buttonOf(at: Situation): Button {
  const button = openButton(at);
  const until = button.kind === 'buy' || button.kind === 'waitlist' || button.kind === 'enter' || button.kind === 'join' ? waitsUntil(at.attempt) : null;
  return until !== null && shownFailure(at, button) ? { kind: 'blocked', until } : button;
}

/** The button, as if nothing had been refused. */
function openButton(at: Situation): Button {
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
      return { kind: sale.mode === 'RUSH' && drawOpen(sale, at.now) && !at.verified && opensFor(sale) === Date.parse(sale.startsAt) ? 'join' : 'wait' };
    case 'BUY':
    case 'ENTER_DRAW':
    case 'IN_DRAW':
      return besideOther(at, phase);
    case 'JOIN_WAITLIST':
    case 'ON_WAITLIST':
      return besideOther(at, phase); // units may have come back since the viewer was read
    case 'WATCH_QUEUE':
      return { kind: 'queue', delayed: sale.viewer?.orderTask?.delayed ?? false };
    case 'PAY':
    case 'VIEW_ORDER':
      if (!order) return none;
      return order.item.id === at.itemId ? { kind: action === 'PAY' ? 'pay' : 'order', order } : besideOther(at, phase);
    case 'IN_WAITING_ROOM':
      if (sale.viewer?.queueTicket?.item.id === at.itemId) return { kind: phase === 'UPCOMING' ? 'joined' : 'room' };
      return besideOther(at, phase);
    case 'NONE':
      return none;
  }
}
