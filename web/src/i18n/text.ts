import { batch, signal } from '@preact/signals';
import type { Fault } from '@seckill/client/fault';
import { moneyOptions } from '@seckill/client/money';
import type { Failure, Money } from '@seckill/client/types';
import { persistentStore } from '../api/storage';
import { en, type Key } from './en';
import { lang, tag, type Lang } from './lang';

/** Texts by key. */
export type Texts = Record<string, string>;

/** Values that a text needs. */
export type Values = Record<string, string | number>;

/** Loaders of texts; a part that is loaded later adds its own. */
const sources: ((of: Lang) => Promise<Texts>)[] = [async (of) => (of === 'zh' ? (await import('./zh')).zh : en)];

const texts = signal<Texts>({});

async function read(of: Lang): Promise<Texts> {
  return Object.assign({}, ...(await Promise.all(sources.map((source) => source(of)))));
}

/** Fetches the texts of a language, then changes to it and remembers it. */
export async function setLanguage(next: Lang): Promise<void> {
  const found = await read(next);
  batch(() => {
    texts.value = found;
    lang.value = next;
  });
  persistentStore.setItem('lang', next);
}

/** Fetches the texts of the language in use; with a source, also its texts from now on. */
export async function loadTexts(source?: (of: Lang) => Promise<Texts>): Promise<void> {
  if (source) sources.push(source);
  const found = await read(lang.peek());
  texts.value = { ...texts.peek(), ...found };
}

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** A text that people typed, for use within another one: text from right to left does not mix with what is around it. Elements use `bdi` instead. */
export const isolate = (text: string): string => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/** Fills {name} places of a text. */
export function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => isolate(String(values[name] ?? '')));
}

/** A text in the language in use. */
export function t(key: Key, values: Values = {}): string {
  return fill(texts.value[key] ?? key, values);
}

/** The text of a computed key, or the fallback. */
export function textOr(key: string, fallback: string, values: Values = {}): string {
  const text = texts.value[key];
  return text ? fill(text, values) : fallback;
}

/** The text of a refusal: by code and field, else by code, else the server's message. */
export function explain(failure: Failure): string {
  if (failure.__typename === 'SaleNotOpenError' && failure.code === 'SALE_CLOSED') {
    return textOr(`button.${failure.phase}`, t('error.SALE_CLOSED')); // the phase says more than "closed"
  }
  if (failure.__typename === 'PurchaseLimitError') {
    const shared = textOr(`error.PURCHASE_LIMIT_REACHED.${failure.limitBy}`, '', { n: failure.limit });
    if (shared) return shared;
    const which = failure.wholeSale ? (failure.remaining > 0 ? '.sale' : '.used') : '';
    return textOr(`error.PURCHASE_LIMIT_REACHED${which}`, failure.message, { n: failure.limit, more: failure.remaining });
  }
  if (failure.__typename === 'RateLimitedError') {
    return `${t(`wait.${failure.cause}`)}${lang.value === 'zh' ? '' : ' '}${t('wait.again', { time: waitText(failure.retryAfterMs) })}`;
  }
  return textOr(`error.${failure.code}.${failure.path?.at(-1)}`, textOr(`error.${failure.code}`, failure.message));
}

/** The message for a fault. */
export function faultText(fault: Fault): string {
  return textOr(`fault.${fault.code}`, t('fault.INTERNAL'));
}

const formats = new Map<string, unknown>();

/** Creates a formatter once per language and name: creation costs far more than use. */
function format<T>(name: string, make: (tag: string) => T): T {
  const key = `${tag()} ${name}`;
  if (!formats.has(key)) formats.set(key, make(tag()));
  return formats.get(key) as T;
}

/** How Intl displays a currency. ¥ is used for CNY only, so JPY is shown as JP¥ in Chinese and as JPY in English. */
function displayOf(currency: string): 'symbol' | 'narrowSymbol' | 'code' {
  if (currency === 'CNY') return 'narrowSymbol';
  return currency === 'JPY' && lang.value !== 'zh' ? 'code' : 'symbol';
}

/** An amount in its currency, exactly as the API gives it; whole amounts show no decimals. */
export function money(of: Money): string {
  const options = moneyOptions(of);
  const name = `${of.currencyCode} ${options.maximumFractionDigits}`;
  return format(name, (tag) => new Intl.NumberFormat(tag, { ...options, currencyDisplay: displayOf(of.currencyCode), trailingZeroDisplay: 'stripIfInteger' })).format(
    of.amount as Intl.StringNumericLiteral,
  );
}

/** Decimals of an exact amount; no currency of the API has more. */
const SCALE = 4;

/** An amount in units of 10^-SCALE. */
function units({ amount }: Money): bigint {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(SCALE, '0').slice(0, SCALE));
}

/** The amount of a number of units of 10^-SCALE, in the currency and with the decimals of another amount. */
function ofUnits(units: bigint, { amount, currencyCode }: Money): Money {
  const text = String(units).padStart(SCALE + 1, '0');
  const fraction = text.slice(-SCALE).slice(0, amount.split('.')[1]?.length ?? 0);
  return { amount: text.slice(0, -SCALE) + (fraction && `.${fraction}`), currencyCode };
}

/** An amount n times, exactly. */
export const times = (price: Money, n: number): Money => ofUnits(units(price) * BigInt(n), price);

/** The sum of amounts in one currency; null for none, or for several currencies. */
export function total(amounts: readonly Money[]): Money | null {
  const [first] = amounts;
  if (!first || amounts.some(({ currencyCode }) => currencyCode !== first.currencyCode)) return null;
  return ofUnits(amounts.reduce((sum, each) => sum + units(each), 0n), first);
}

/** How many percent a price is below the list price, rounded down; negative above it, 0 in another currency. */
export function percentOff(price: Money, usual: Money): number {
  if (price.currencyCode !== usual.currencyCode || units(usual) === 0n) return 0;
  return Number(((units(usual) - units(price)) * 100n) / units(usual));
}

/** What is saved against a higher amount of the same currency; null where nothing is. */
export function saved(price: Money, usual: Money): Money | null {
  const difference = units(usual) - units(price);
  return price.currencyCode === usual.currencyCode && difference > 0n ? ofUnits(difference, price) : null;
}

/** The lowest of some amounts in one currency. */
export const lowest = (prices: readonly Money[]): Money => prices.reduce((least, price) => (units(price) < units(least) ? price : least));

/** A whole number. */
export const count = (n: number): string => format('count', (of) => new Intl.NumberFormat(of)).format(n);

const day = { month: 'short', day: 'numeric' } as const;
const minute: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
const second: Intl.DateTimeFormatOptions = { ...minute, second: '2-digit' };

/** The time zone, and whether to name it. */
type Zone = Pick<Intl.DateTimeFormatOptions, 'timeZone' | 'timeZoneName'>;

/** Date and time in the browser's time zone, or in the given one. Whole minutes show no seconds. */
export function moment(iso: string, zone: Zone = {}): string {
  const at = new Date(iso);
  const time = at.getSeconds() ? second : minute;
  const name = `moment ${time.second} ${zone.timeZone} ${zone.timeZoneName}`;
  return format(name, (of) => new Intl.DateTimeFormat(of, { ...day, ...time, ...zone })).format(at);
}

/** The date with its year, as in a receipt, in the browser's time zone. */
export const fullDate = (iso: string): string => format('fullDate', (of) => new Intl.DateTimeFormat(of, { dateStyle: 'long' })).format(Date.parse(iso));

/** Time of day without seconds. */
export const timeOfDay = (iso: string): string => format('timeOfDay', (of) => new Intl.DateTimeFormat(of, minute)).format(Date.parse(iso));

/** Time of day with seconds. */
export const clockTime = (ms: number): string => format('clock', (of) => new Intl.DateTimeFormat(of, second)).format(ms);

/** How a span is rounded to whole seconds: up before an opening, so that zero means open; down where money is due, so that no more time is shown than is left. */
export type Rounding = 'up' | 'down';

/** Days, hours, minutes and seconds of a time span in ms. */
export function parts(ms: number, rounding: Rounding = 'up'): { days: number; hours: number; minutes: number; seconds: number } {
  const s = Math.max(0, (rounding === 'up' ? Math.ceil : Math.floor)(ms / 1000));
  return {
    days: Math.floor(s / 86_400),
    hours: Math.floor(s / 3600) % 24,
    minutes: Math.floor(s / 60) % 60,
    seconds: s % 60,
  };
}

/** A span as digits: 4:05, 1:04:05, 2 d 1:04:05. */
export function digits(ms: number, rounding: Rounding = 'up'): string {
  const { days, hours, minutes, seconds } = parts(ms, rounding);
  const two = (n: number): string => String(n).padStart(2, '0');
  const clock = days || hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
  return days ? `${t('time.days', { n: days })} ${clock}` : clock;
}

/** A span in words, in its largest unit and the next, never rounded up: 15 minutes; 1 minute 30 seconds. */
export function span(seconds: number): string {
  const { days, hours, minutes, seconds: rest } = parts(seconds * 1000, 'down');
  const units: ['hour' | 'minute' | 'second', number][] = [['hour', days * 24 + hours], ['minute', minutes], ['second', rest]];
  const first = units.findIndex(([, n]) => n > 0);
  const words = (first < 0 ? units.slice(-1) : units.slice(first, first + 2).filter(([, n]) => n > 0)).map(([unit, n]) =>
    format(unit, (of) => new Intl.NumberFormat(of, { style: 'unit', unit, unitDisplay: 'long' })).format(n),
  );
  return words.join(' ').replace(/\d(?=\p{Script=Han})/gu, '$& ');
}

const MINUTE_MS = 60_000;

/** The time until a retry in words, rounded up: whole minutes, and seconds in the last minute. */
export const waitText = (ms: number): string => span(ms > MINUTE_MS ? Math.ceil(ms / MINUTE_MS) * 60 : Math.max(1, Math.ceil(ms / 1000)));

const DAY_HOURS = 24;

/** A minimum age in hours, in days where it is whole days. */
export const hoursOrDays = (hours: number): string => (hours % DAY_HOURS === 0 ? t('ready.days', { n: hours / DAY_HOURS }) : t('ready.hours', { n: hours }));
