/** The forms of what people type, as internal/platform/typed makes them on the server. A form counts and checks characters as the server will. */

/** White space for Go: U+0085 belongs to it, U+FEFF does not and is invisible. */
const space = '\\s\\u0085';

/** Characters that show others in another order. No language needs them. */
const overrides = /[\u202d\u202e]/u;

/** Characters that are removed from both ends: white space, and those without a glyph. Overrides and the tags of flags stay. */
const atEnd = `(?:[${space}\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0]|(?![\\u202d\\u202e\\u{e0000}-\\u{e007f}])\\p{Cf})+`;
const ends = new RegExp(`^${atEnd}|${atEnd}$`, 'gu');

/** Embeddings and isolates, and tags, unless they spell a flag (the first group). */
const hidden = /(\u{1f3f4}[\u{e0000}-\u{e007f}]+)|[\u202a-\u202c\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

/** A text that may have several lines. */
export const text = (typed: string): string =>
  typed.replace(/\r\n?|\u2028/g, '\n').replaceAll('\u2029', '\n\n').replace(hidden, '$1').replace(ends, '').normalize('NFC');

/** A text of one line. */
export const line = (typed: string): string => text(typed).replace(new RegExp(`[${space}]+`, 'gu'), ' ');

/** What names something. */
export const identifier = (typed: string): string =>
  typed
    .normalize('NFKC')
    .replace(/[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]|(?![\u202d\u202e])\p{Cf}/gu, '')
    .normalize('NFKC')
    .replace(new RegExp(`^[${space}]+|[${space}]+$`, 'gu'), '');

/** An identifier with ASCII hyphens. */
export const plain = (typed: string): string => identifier(typed).replace(/\p{Pd}|\u2212/gu, '-');

/** Characters as the server counts them: code points. */
export const lengthOf = (form: string): number => [...form].length;

/** Whether a text has characters that show others in another order. */
export const overridden = (typed: string): boolean => overrides.test(typed);
