import { batch, signal } from '@preact/signals';
import type { Fault } from '../api/fault';
import type { Failure, Money } from '../api/types';
import type { Key } from './en';
import { lang, tag, type Lang } from './lang';

/** Texts by key. */
export type Texts = Record<string, string>;

/** Values that a text needs. */
export type Values = Record<string, string | number>;

/** Ways to fetch texts; each part of the shop that is loaded later adds its own. */
const sources: ((of: Lang) => Promise<Texts>)[] = [
  async (of) => (of === 'zh' ? (await import('./zh')).zh : (await import('./en')).en),
];

const texts = signal<Texts>({});

async function read(of: Lang): Promise<Texts> {
  return Object.assign({}, ...(await Promise.all(sources.map((source) => source(of)))));
}

/** Fetches the texts of a language, then changes to it and remembers it. */
export async function speak(next: Lang): Promise<void> {
  const found = await read(next);
  batch(() => {
    texts.value = found;
    lang.value = next;
  });
  localStorage.setItem('lang', next);
}

/** Fetches the texts of the language in use; with a source, also its texts from now on. */
export async function loadTexts(source?: (of: Lang) => Promise<Texts>): Promise<void> {
  if (source) sources.push(source);
  const found = await read(lang.peek());
  texts.value = { ...texts.peek(), ...found };
}

/** Fills {name} places of a text. */
export function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}

/** A text in the language in use. */
export function t(key: Key, values: Values = {}): string {
  return fill(texts.value[key] ?? key, values);
}

/** A text whose key is put together; the fallback is used when there is none. */
export function maybe(key: string, fallback: string, values: Values = {}): string {
  const text = texts.value[key];
  return text ? fill(text, values) : fallback;
}

/** A refusal in words: ours where we know the code, else the server's. */
export function explain(failure: Failure): string {
  const s = failure.__typename === 'RateLimitedError' ? Math.ceil(failure.retryAfterMs / 1000) : 1;
  return maybe(`error.${failure.code}`, failure.message, { s });
}

/** A fault in words. */
export function apologise(fault: Fault): string {
  return maybe(`fault.${fault.code}`, t('fault.INTERNAL'));
}

/** An amount in its currency. The API's decimals are exact, so they stay text. */
export function money({ amount, currencyCode }: Money): string {
  const format = new Intl.NumberFormat(tag(), {
    style: 'currency',
    currency: currencyCode,
    currencyDisplay: 'narrowSymbol',
    trailingZeroDisplay: 'stripIfInteger',
  });
  return format.format(amount as Intl.StringNumericLiteral);
}

/** A whole number. */
export const count = (n: number): string => new Intl.NumberFormat(tag()).format(n);

/** Date and time in the zone of the person, or in the one given. */
export function moment(iso: string, zone?: string): string {
  return new Intl.DateTimeFormat(tag(), {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: new Date(iso).getSeconds() ? '2-digit' : undefined,
    hourCycle: 'h23',
    ...(zone && { timeZone: zone }),
  } as Intl.DateTimeFormatOptions).format(new Date(iso));
}

/** Time of day with seconds. */
export function clockTime(ms: number): string {
  const options = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
  return new Intl.DateTimeFormat(tag(), options).format(ms);
}

/** Days, hours, minutes and seconds of a time span in ms, rounded up to whole seconds. */
export function parts(ms: number): { days: number; hours: number; minutes: number; seconds: number } {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return {
    days: Math.floor(s / 86_400),
    hours: Math.floor(s / 3600) % 24,
    minutes: Math.floor(s / 60) % 60,
    seconds: s % 60,
  };
}

/** A span as digits: 4:05, 1:04:05, 2 d 1:04:05. */
export function digits(ms: number): string {
  const { days, hours, minutes, seconds } = parts(ms);
  const two = (n: number): string => String(n).padStart(2, '0');
  const clock = days || hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
  return days ? `${t('time.days', { n: days })} ${clock}` : clock;
}

/** A span in words, in its largest unit: 15 minutes. */
export function span(seconds: number): string {
  const unit = seconds >= 3600 ? 'hour' : seconds >= 60 ? 'minute' : 'second';
  const n = Math.round(seconds / { hour: 3600, minute: 60, second: 1 }[unit]);
  return new Intl.NumberFormat(tag(), { style: 'unit', unit, unitDisplay: 'long' }).format(n);
}
