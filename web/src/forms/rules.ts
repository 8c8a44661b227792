/**
 * Rules of form fields. They refuse nothing that the server accepts: the bounds are those of graph/schema, the formats those of
 * internal/identity/account and internal/identity/recipient. Rules that need data of the server, such as the list of common passwords, are checked by the server only.
 */
import type { Key } from '../i18n/en';
import type { Values } from '../i18n/text';
import { identifier, lengthOf, line, overridden, plain } from './typed';

/** Why a value is refused: a text and its values. */
export interface FieldError {
  key: Key;
  values?: Values;
}

/** Checks a value; null = nothing is wrong. */
export type Rule = (value: string) => FieldError | null;

/** Fewest and most characters of a field. */
export interface Bounds {
  least: number;
  most: number;
}

/** Bounds of the input of `register`. */
export const newAccount = {
  displayName: { least: 1, most: 32 },
  account: { least: 3, most: 254 },
  password: { least: 10, most: 128 },
} as const satisfies Record<string, Bounds>;

/** Bounds of the input of `saveAddress` and `correctRecipient`. */
export const address = {
  name: { least: 1, most: 64 },
  phone: { least: 5, most: 32 },
  country: { least: 2, most: 2 },
  region: { least: 0, most: 64 },
  city: { least: 1, most: 64 },
  street: { least: 1, most: 200 },
  postalCode: { least: 0, most: 16 },
} as const satisfies Record<string, Bounds>;

/** Bounds of the reason of a correction by staff. */
export const reason: Bounds = { least: 1, most: 200 };

/** Refuses an empty value. */
export const required: Rule = (value) => (value ? null : { key: 'form.required' });

/** Refuses a value that is empty where it may not be, too short or too long. */
function outside(value: string, { least, most }: Bounds): FieldError | null {
  const n = lengthOf(value);
  if (n === 0 && least > 0) return { key: 'form.required' };
  if (n < least) return { key: 'form.short', values: { n: least } };
  return n > most ? { key: 'form.long', values: { n: most } } : null;
}

/** Why a text cannot be stored as it is. */
function unfit(form: string, bounds: Bounds): FieldError | null {
  const flaw = outside(form, bounds);
  if (flaw) return flaw;
  if (overridden(form)) return { key: 'form.direction' };
  return /(?!\n)\p{Cc}/u.test(form) ? { key: 'form.characters' } : null;
}

/** The rule of a text that may be anything within its bounds. */
export const within = (bounds: Bounds): Rule => (value) => unfit(value, bounds);

/** The rule of a display name. */
export const displayName: Rule = (value) => unfit(line(value), newAccount.displayName) ?? (/\p{Co}/u.test(value) ? { key: 'form.characters' } : null);

/** The domain of an e-mail address, in ASCII. Its last part begins with a letter. */
export const hostName = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;
/** The name before it: words with single dots between them. */
const mailboxName = /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_{|}~`-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_{|}~`-]+)*$/u;

/** A domain in ASCII; empty for another text. */
function inASCII(domain: string): string {
  if (!/^[\p{L}\p{M}\p{N}.。-]+$/u.test(domain)) return '';
  try {
    return new URL(`http://${domain}`).hostname;
  } catch {
    return '';
  }
}

/** Whether e-mail can be sent to an address in lower case. */
function isMailbox(text: string): boolean {
  const at = text.lastIndexOf('@');
  const name = text.slice(0, Math.max(at, 0));
  return new TextEncoder().encode(name).length <= 64 && mailboxName.test(name) && hostName.test(inASCII(text.slice(at + 1)));
}

/** Normalises an account as the server does. İ is replaced first: Go lower-cases it to one code point, JavaScript to two. */
const normaliseAccount = (text: string): string => identifier(text).replaceAll('İ', 'i').toLowerCase();

/** Whether a text may be a phone number; only the server checks that the number is valid. */
const maybePhone = (text: string): boolean => !/\p{L}/u.test(text) && (text.match(/\p{Nd}/gu)?.length ?? 0) >= (text.startsWith('+') ? 4 : 2);

/** What follows a number within the building that it reaches. */
export const extension = / ?(?:ext\.?|extension|x|转|分机) ?:?[0-9]{1,6}$/i;

/**
 * The rule of an account: an e-mail address or a phone number, which needs its country code where `country` is null. Undefined while the
 * setting of the installation is not loaded.
 */
export function account(country: string | null | undefined): Rule {
  return (value) => {
    const text = normaliseAccount(value);
    const flaw = outside(text, newAccount.account);
    if (flaw?.key === 'form.required' || flaw?.key === 'form.long') return flaw;
    const isPhone = text.startsWith('+') || (country !== null && !text.includes('@'));
    if (!flaw && (isPhone ? maybePhone(text) : isMailbox(text))) return null;
    return { key: country === null ? 'form.accountAny' : 'form.account' };
  };
}

/** Fewest different characters in a password. */
const DISTINCT = 5;

/** Sequences of keys that a password must not be part of, in both directions. */
export const keyRows = ['01234567890123456789', 'abcdefghijklmnopqrstuvwxyz', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'];

/** Letters by the characters that often replace them. */
const leet: Record<string, string> = { '@': 'a', '4': 'a', '3': 'e', '1': 'i', '0': 'o', $: 's', '5': 's', '7': 't' };

/** The shortest part whose repetition is the text. */
function repeated(text: string): string {
  for (let n = 1; n <= text.length / 2; n++) {
    const part = text.slice(0, n);
    if (text.length % n === 0 && part.repeat(text.length / n) === text) return part;
  }
  return text;
}

/** Whether an ASCII password is easy to guess. Other passwords are left to the server, which counts bytes and has a word list. */
function guessable(password: string, name: string): boolean {
  const text = password.toLowerCase();
  if (new Set(text).size < DISTINCT) return true;
  if (keyRows.some((row) => row.includes(text) || [...row].reverse().join('').includes(text))) return true;
  const plain = [...text].map((char) => leet[char] ?? char).join('');
  if (name && [text, plain].some((each) => repeated(each.replace(/[^a-z]/g, '')) === name)) return true;
  const part = repeated(text);
  return part.length < text.length && part.length < newAccount.password.least;
}

/** The rule of the password of an account. */
export function password(of: string): Rule {
  const name = normaliseAccount(of);
  return (value) => {
    const flaw = outside(value, newAccount.password);
    if (flaw) return flaw;
    if (!/^[\x20-\x7e]+$/.test(value)) return null;
    if (name.includes('@') && value.toLowerCase() === name) return { key: 'form.passwordAccount' };
    return guessable(value, name.split('@')[0]!) ? { key: 'form.passwordCommon' } : null;
  };
}

/** A postal code. */
export const postalCode = /^[0-9A-Za-z -]*$/;
/** A country, in capitals. */
export const countryCode = /^[A-Z]{2}$/;

/** A text on one line. */
const onLine = (bounds: Bounds): Rule => (value) => unfit(line(value), bounds);

/** A text of a format. */
const matching = (bounds: Bounds, fits: (form: string) => boolean, key: Key): Rule => (value) => {
  const form = plain(value);
  return outside(form, bounds) ?? (fits(form) ? null : { key });
};

/** The rules of an address. */
export const addressRules: Record<keyof typeof address, Rule> = {
  name: onLine(address.name),
  phone: matching(address.phone, (text) => maybePhone(text.replace(extension, '')), 'form.phone'),
  country: (value) => (plain(value) && !countryCode.test(plain(value).toUpperCase()) ? { key: 'form.country' } : required(plain(value))),
  region: onLine(address.region),
  city: onLine(address.city),
  street: onLine(address.street),
  postalCode: matching(address.postalCode, (form) => postalCode.test(form), 'form.postalCode'),
};
