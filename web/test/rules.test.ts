import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { account, address, addressRules, countryCode, displayName, extension, hostName, keyRows, newAccount, password, postalCode, reason, type Bounds, type Rule } from '../src/forms/rules';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Bounds of the fields of an input type in the schema, by their names. */
function boundsOf(file: string, input: string): Record<string, Bounds> {
  const body = new RegExp(`input ${input} \\{([^}]*)\\}`).exec(read(`graph/schema/${file}`))![1]!;
  const fields = [...body.matchAll(/^ {2}(\w+): String!? @constraint\((?:minLength: (\d+), )?maxLength: (\d+)\)/gm)];
  return Object.fromEntries(fields.map(([, name, least, most]) => [name, { least: Number(least ?? 0), most: Number(most) }]));
}

/** Expects a Go file of the server to contain the same pattern. */
const inGo = (file: string, pattern: RegExp): void => expect(read(file).replaceAll('` + "`" + `', '`')).toContain(pattern.source.replaceAll('\\/', '/'));

const key = (rule: Rule, value: string): string | undefined => rule(value)?.key;

test('the bounds and formats are those of the server', () => {
  expect(boundsOf('account.graphqls', 'RegisterInput')).toEqual(newAccount);
  expect(boundsOf('recipient.graphqls', 'SaveAddressInput')).toEqual(address);
  const { reason: { most } = reason, ...corrected } = boundsOf('recipient.graphqls', 'CorrectRecipientInput');
  expect(corrected).toEqual(address);
  expect(most).toBe(reason.most);
  inGo('internal/platform/typed/mailbox.go', hostName);
  inGo('internal/platform/typed/phone.go', extension);
  for (const pattern of [postalCode, countryCode]) inGo('internal/identity/recipient/recipient.go', pattern);
  expect(read('internal/identity/account/password.go')).toContain(`{${keyRows.map((row) => `"${row}"`).join(', ')}}`);
});

test('characters are counted as the server counts them', () => {
  expect(displayName('🐼'.repeat(32))).toBeNull();
  expect(displayName('🐼'.repeat(33))).toEqual({ key: 'form.long', values: { n: 32 } });
  expect(password('a@b.co')('🐼🦊🐻🐰🐸🐼🦊🐻🐰🐸')).toBeNull();
  expect(key(password('a@b.co'), '🐼🦊🐻🐰🐸')).toBe('form.short');
});

test('a display name needs a letter and no control characters', () => {
  for (const name of ['李雷', '  李  雷 ', 'a\u0085b', "O'Neil", 'می\u200cخواهم', '👩\u200d💻', '\u200fשלום', '\u202aJo\u202c', 'a\u200bb', ' '.repeat(40) + 'x']) expect(key(displayName, name), name).toBeUndefined();
  for (const name of ['', '   ', '\u200b', '\u3164\u2800']) expect(key(displayName, name)).toBe('form.required');
  expect(key(displayName, 'a\u0000b')).toBe('form.characters');
  expect(key(displayName, 'a\u202eb')).toBe('form.direction');
});

/** Accounts that the server accepts with any setting: see internal/identity/account/name_test.go. */
const accounts = [
  'a@b.co', ' A.B+Tag@Example.Com ', 'ｕｓｅｒ@example.com', 'user@sub.xn--fiqs8s', 'İvan@example.com', `${'a'.repeat(64)}@example.com`,
  '+8613800138000', '+86 138 0013 8000', '+1 (202) 555-0123', '+44 20 7946 0958', '＋8613800138000',
  '\u202aｆｏｏ＠ｅｘａｍｐｌｅ．ｃｏｍ\u202c', '\u2066a@b.co\u2069\u200b', 'a@münchen.example', '用户@例子.中国', 'a@例子。中国', "o'neil/x=1@example.com",
];

test('accounts are e-mail addresses and phone numbers', () => {
  for (const text of accounts) for (const country of [undefined, null, 'CN']) expect(account(country)(text), text).toBeNull();
  for (const text of ['13800138000', '138 0013 8000']) {
    expect(key(account(null), text)).toBe('form.accountAny');
    expect(account('CN')(text)).toBeNull();
    expect(account(undefined)(text), 'the country is not known yet').toBeNull();
  }
  const none = ['a..b@example.com', '.a@b.co', 'a.@b.co', 'a@b.co/x', 'a\u202eb@c.de', 'a👩@b.co', `${'长'.repeat(22)}@b.co`, 'a', 'a@', '@b.co', 'a@b', 'a b@c.de', 'a@b..co', 'a@-b.co', 'a@b@c.de', '<a@b.co>', 'a@b.c', 'a@127.0.0.1', 'a@1.10', 'a@example.123', 'a@example.com.', '+', '+1', '+86abc0013800', 'tel:+8613800138000', '1380013800x', `${'a'.repeat(65)}@example.com`];
  for (const text of none) for (const country of [undefined, null, 'CN']) expect(key(account(country), text), text).toMatch(/^form\.account/);
  expect(key(account(null), '')).toBe('form.required');
});

test('passwords that the server refuses are refused, as far as that can be known', () => {
  const of = password('AnnaSmith@example.com');
  for (const text of ['aaaaaaaaaaaa', 'abcabcabcabc', '1234567890', '0987654321', 'qwertyuiop', 'abcdefghijkl', 'annasmith99', '4nna5mith99']) {
    expect(key(of, text), text).toBe('form.passwordCommon');
  }
  expect(key(of, 'annasmith@EXAMPLE.com')).toBe('form.passwordAccount');
  expect(key(of, '')).toBe('form.required');
  expect(of('short')).toEqual({ key: 'form.short', values: { n: 10 } });
  for (const text of ['a long enough password', 'tower-violin-46-mist', 'Xk29-pLq7-vvN3', '我的密码是一只红色的猫咪', 'приветпривет']) expect(of(text), text).toBeNull();
  expect(password('13912345678')('13912345678')).toBeNull(); // the server compares with the number in full
});

test('an address is checked without the spaces around it', () => {
  const right = { name: ' Lin Xiaoyu ', phone: ' \u202a+86 138 0000 1111\u202c', country: 'cn ', region: '', city: 'Hangzhou', street: '90 Wensan Road', postalCode: '' };
  for (const [name, value] of Object.entries(right)) expect(addressRules[name as keyof typeof right](value), name).toBeNull();
  for (const name of ['name', 'phone', 'country', 'city', 'street'] as const) expect(key(addressRules[name], '  '), name).toBe('form.required');
  for (const phone of ['(206) 555-0123', '206.555.0123', '030/1234567', '１３８００００１１１１', '٠٥٠١٢٣٤٥٦٧', '(206) 555-0123 x4', '+1 206 555 0123 ext. 15', '010-12345678转802', '030/1234567 分机 12']) expect(addressRules.phone(phone), phone).toBeNull();
  for (const phone of ['one two', '206x5550123', '206 555 0123 x', 'call 206 555 0123']) expect(key(addressRules.phone, phone), phone).toBe('form.phone');
  expect(addressRules.phone('1234')).toEqual({ key: 'form.short', values: { n: 5 } });
  for (const country of ['C', 'CHN', 'C1', '中国']) expect(key(addressRules.country, country), country).toBe('form.country');
  expect(key(addressRules.postalCode, '31000_')).toBe('form.postalCode');
  expect(addressRules.city('x'.repeat(65))).toEqual({ key: 'form.long', values: { n: 64 } });
  expect(addressRules.street('a\tb')).toBeNull();
  expect(key(addressRules.street, 'a\u0007b')).toBe('form.characters');
  expect(key(addressRules.street, 'a\u202eb')).toBe('form.direction');
});
