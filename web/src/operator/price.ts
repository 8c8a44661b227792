/** What is unusual about a price. */
import type { Money } from '@seckill/client/types';
import { percentOff } from '../i18n/text';
import { ot } from './texts';

/** A discount above this, in percent, is likely a mistake. */
const DEEP_PERCENT = 70;
/** A price that differs from the earlier one by more than this, in percent of it, is likely a mistake. */
const FAR_PERCENT = 50;

/** What is unusual about a price beside the list price and the price of an earlier sale; null where nothing is. */
export function priceWarning(price: Money, list: Money, earlier?: { price: Money; words: string }): string | null {
  const percent = percentOff(price, list);
  if (percent <= 0 && Number(price.amount) >= Number(list.amount) && price.currencyCode === list.currencyCode) return ot('op.above');
  if (percent > DEEP_PERCENT) return ot('op.deep');
  const far = earlier && price.currencyCode === earlier.price.currencyCode && Math.abs(percentOff(price, earlier.price)) > FAR_PERCENT;
  return far ? ot('op.far', { price: earlier.words }) : null;
}
