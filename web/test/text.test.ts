import { beforeEach, describe, expect, test } from 'vitest';
import { en } from '../src/i18n/en';
import { digits, explain, fill, lowest, money, percentOff, saved, span, setLanguage, t, times, total } from '../src/i18n/text';
import { zh } from '../src/i18n/zh';
import { safeNext } from '../src/pages/sign';
import { slotsOf } from '../src/pages/slots';
import { crossed, OPENING } from '../src/ui/countdown';
import { sale, T0 } from './shop';

/** Decimals of the currencies that have not two, by ISO 4217: the server's amounts have as many. The browser's own table differs for 20 currencies. */
const DECIMALS: Record<string, number> = {
  ...Object.fromEntries('BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0])),
  ...Object.fromEntries('BHD IQD JOD KWD LYD OMR TND'.split(' ').map((code) => [code, 3])),
  CLF: 4,
  UYW: 4,
};

const places = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).sort();

describe('the catalogues', () => {
  test('have the same keys', () => expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort()));
  test('have the same places to fill', () => {
    for (const [key, text] of Object.entries(en)) expect(places(zh[key as keyof typeof en]), key).toEqual(places(text));
  });
  test('fill their places', () => expect(fill('{a} of {b}', { a: 1, b: 'x' })).toBe('1 of x'));
});

describe('in English', () => {
  beforeEach(() => setLanguage('en'));
  test('money is exact and in its currency', () => {
    expect(money({ amount: '1299.50', currencyCode: 'CNY' })).toBe('¥1,299.50');
    expect(money({ amount: '1299.00', currencyCode: 'CNY' })).toBe('¥1,299');
    expect(money({ amount: '9007199254740993.01', currencyCode: 'USD' })).toBe('$9,007,199,254,740,993.01');
    expect(money({ amount: '12800', currencyCode: 'JPY' })).toBe('JPY\u00a012,800'); // not ¥
  });
  test('an amount of any currency is shown with the decimals that the server charges', async () => {
    for (const language of ['en', 'zh'] as const) {
      await setLanguage(language);
      for (const currencyCode of new Set([...Intl.supportedValuesOf('currency'), ...Object.keys(DECIMALS)])) {
        const fraction = '1234'.slice(0, DECIMALS[currencyCode] ?? 2);
        const price = { amount: fraction ? `999.${fraction}` : '999', currencyCode };
        const shown = (each: typeof price): string => /\d[\d,]*(\.\d+)?/.exec(money(each))![0];
        expect(shown(price), currencyCode).toBe(price.amount);
        const twice = fraction ? `1,998.${String(2 * Number(fraction)).padStart(fraction.length, '0')}` : '1,998';
        for (const sum of [times(price, 2), total([price, price])!, saved(price, times(price, 3))!]) expect(shown(sum), currencyCode).toBe(twice);
      }
    }
  });
  test('spans are rounded up, so that zero means over', () => {
    expect(digits(1)).toBe('0:01');
    expect(digits(0)).toBe('0:00');
    expect(digits(-5)).toBe('0:00');
    expect(digits(61_000)).toBe('1:01');
    expect(digits(3_661_000)).toBe('1:01:01');
    expect(digits(90_061_000)).toBe('1 d 1:01:01');
    expect(span(900)).toBe('15 minutes');
    expect(span(119)).toBe('1 minute 59 seconds'); // a deadline is never rounded up
    expect(span(7199)).toBe('1 hour 59 minutes');
    expect(span(0)).toBe('0 seconds');
  });
  test('the time left to pay is never rounded up', () => {
    expect(digits(899_999, 'down')).toBe('14:59');
    expect(digits(999, 'down')).toBe('0:00');
    expect(digits(-5, 'down')).toBe('0:00');
  });
  test('amounts are counted exactly', () => {
    const of = (amount: string, currencyCode = 'CNY') => ({ amount, currencyCode });
    expect(money(times(of('9007199254740993.01'), 3))).toBe('¥27,021,597,764,222,979.03');
    expect(money(saved(of('699.00'), of('1899.00'))!)).toBe('¥1,200');
    expect(saved(of('699.00'), of('699.00'))).toBeNull();
    expect(saved(of('699.00'), of('1899.00', 'USD'))).toBeNull();
    expect(money(lowest([of('9.50'), of('9.05'), of('100.00')]))).toBe('¥9.05');
    expect(money(total([of('0.10'), of('0.20')])!)).toBe('¥0.30');
    expect(total([of('0.10'), of('0.20', 'USD')])).toBeNull();
    expect([percentOff(of('30.00'), of('100.00')), percentOff(of('110.00'), of('100.00')), percentOff(of('1.00'), of('1.00', 'USD'))]).toEqual([70, -10, 0]);
  });
  test('a refusal is in our words, an unknown one in the server’s', () => {
    const failure = { __typename: 'BasicError', code: 'SOLD_OUT', message: 'server', path: null } as const;
    expect(explain(failure)).toBe(en['error.SOLD_OUT']);
    expect(explain({ ...failure, code: 'NEW_CODE' as never })).toBe('server');
    expect(explain({ ...failure, __typename: 'RateLimitedError', code: 'RATE_LIMITED', cause: 'TOO_MANY_CALLS', retryAfterMs: 1_200 })).toContain('2 s');
  });
  test('a refusal by a sale that is not open says why it is not', () => {
    const failure = { __typename: 'SaleNotOpenError', code: 'SALE_CLOSED', message: 'server', path: null } as const;
    expect(explain({ ...failure, code: 'SALE_PAUSED', phase: 'PAUSED' } as never)).toBe(en['error.SALE_PAUSED']);
    expect(explain({ ...failure, phase: 'ENDED' } as never)).toBe(en['button.ENDED']);
    expect(explain({ ...failure, phase: 'LIVE' } as never)).toBe(en['error.SALE_CLOSED']);
  });
  test('a value that does not fit is explained by its field, where that says more', () => {
    const failure = { __typename: 'InputError', code: 'INVALID_INPUT', message: 'server', path: ['input', 'method'] } as const;
    expect(explain(failure as never)).toBe(en['error.INVALID_INPUT.method']);
    expect(explain({ ...failure, path: ['input', 'title'] } as never)).toBe('server');
  });
  test('another language can be taken at any time', async () => {
    await setLanguage('zh');
    expect(t('button.waitlist')).toBe(zh['button.waitlist']);
    expect(document.documentElement.lang).toBe('zh-CN');
  });
});

describe('thresholds', () => {
  test('are said once, when they are crossed', () => {
    expect(crossed(OPENING, 61, 60)).toBe(60);
    expect(crossed(OPENING, 60, 59)).toBeNull();
    expect(crossed(OPENING, 75, 58)).toBe(60);
    expect(crossed(OPENING, 12, 0)).toBeNull();
  });
});

describe('the way back after signing in', () => {
  test('stays in the shop', () => {
    expect(safeNext('?next=%2Fs%2Fone')).toBe('/s/one');
    for (const away of ['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)']) {
      expect(safeNext(`?next=${encodeURIComponent(away)}`), away).toBe('/');
    }
  });
});

describe('the list', () => {
  test('groups by what is on, when it opens, what is over', async () => {
    await setLanguage('en');
    const soon = (id: string, s: number) => sale({ id, phase: 'UPCOMING', startsAt: new Date(T0 + s * 1000).toISOString() });
    const slots = slotsOf([soon('c', 7200), sale({ id: 'a' }), soon('b', 3600), soon('d', 3600), sale({ id: 'e', phase: 'ENDED' })], T0);
    expect(slots.map(({ sales }) => sales.map(({ id }) => id))).toEqual([['a'], ['b', 'd'], ['c'], ['e']]);
  });
});
