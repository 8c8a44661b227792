import type { Money } from './types.ts';

/**
 * How `Intl.NumberFormat` shows an amount exactly: with the decimals that the server gives it, those of its currency by ISO 4217. Browsers have tables
 * of their own, in which COP, HUF, IDR and others have none.
 */
export function moneyOptions({ amount, currencyCode }: Money): Intl.NumberFormatOptions {
  const digits = amount.split('.')[1]?.length ?? 0;
  return { style: 'currency', currency: currencyCode, minimumFractionDigits: digits, maximumFractionDigits: digits };
}

/** An amount in words of a language: `formatMoney(order.total, 'de')`. */
export function formatMoney(money: Money, language: string): string {
  return new Intl.NumberFormat(language, moneyOptions(money)).format(money.amount as Intl.StringNumericLiteral);
}
