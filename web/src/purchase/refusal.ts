/** How long a refusal is shown: it belongs to one item, and ends when what it says is over. */
import type { Attempt } from '@seckill/client/purchase';
import type { Stock } from '@seckill/client/types';
import type { Button, Situation } from './button';

/** An attempt that did not succeed. */
export type Failed = Extract<Attempt, { step: 'refused' | 'broken' }>;

/** Buttons beside which a refusal may still hold: the others show a status that followed it. */
const BESIDE: Button['kind'][] = ['sign-in', 'wait', 'join', 'buy', 'waitlist', 'enter', 'none'];

/** When the wait of a refusal is over, in ms of server time; null where it names none. */
export const waitsUntil = (attempt: Attempt): number | null =>
  attempt.step === 'refused' && attempt.failure.__typename === 'RateLimitedError' ? attempt.at + attempt.failure.retryAfterMs : null;

/** The refusal or the fault of the attempt, while it holds for the chosen item; null otherwise. */
export function shownFailure(at: Situation, button: Button): Failed | null {
  const { attempt, sale, itemId, quantity, stock, now, readAt } = at;
  if ((attempt.step !== 'refused' && attempt.step !== 'broken') || !BESIDE.includes(button.kind)) return null;
  if (attempt.itemId !== null && attempt.itemId !== itemId) return null;
  if (attempt.step === 'broken') return attempt;
  const { failure } = attempt;
  const mine = readAt > attempt.at ? sale.viewer?.items.find(({ item }) => item.id === itemId) : undefined;
  switch (failure.code) {
    case 'RATE_LIMITED':
      return now < (waitsUntil(attempt) ?? Infinity) ? attempt : null;
    case 'ALREADY_ORDERED':
      return mine && mine.remainingLimit > 0 ? null : attempt;
    case 'PURCHASE_LIMIT_REACHED':
      return quantity < attempt.quantity || (mine && mine.remainingLimit >= quantity) ? null : attempt;
    case 'TOO_FEW_LEFT':
      return quantity < attempt.quantity || (comesBack(stock, attempt.at) && (stock.remaining ?? quantity) >= quantity) ? null : attempt;
    case 'SOLD_OUT':
      return comesBack(stock, attempt.at) ? null : attempt;
    default:
      return failure.__typename === 'SaleNotOpenError' && button.kind === 'buy' ? null : attempt; // the sale is open
  }
}

/** The stock of an item; sold out where an attempt was refused for that later than the stock was read. */
export function stockAfter(attempt: Attempt, itemId: string, stock: Stock): Stock {
  const gone = attempt.step === 'refused' && attempt.failure.code === 'SOLD_OUT' && attempt.itemId === itemId && !comesBack(stock, attempt.at);
  return gone ? { ...stock, level: 'SOLD_OUT', remaining: stock.remaining === null ? null : 0 } : stock;
}

/** Whether stock that was read after an instant has units. */
const comesBack = ({ level, updatedAt }: Stock, at: number): boolean => level !== 'SOLD_OUT' && Date.parse(updatedAt) > at;
