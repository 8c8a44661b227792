import { afterEach, beforeEach, expect, test, vi } from 'vitest';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});
beforeEach(() => vi.resetModules());

const forbidden = (): never => {
  throw new DOMException('denied', 'SecurityError');
};

test('the shop opens in a browser that forbids to keep anything', async () => {
  for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(globalThis, name, { get: forbidden, configurable: true });
  try {
    const { forTab } = await import('../src/api/storage');
    const { lang } = await import('../src/i18n/lang');
    const { theme, nextTheme } = await import('../src/ui/theme');
    const { press, pending } = await import('@seckill/client/press');
    const { waitingFor } = await import('@seckill/client/places');
    expect(lang.value).toBe('en');
    nextTheme();
    expect(theme.value).toBe('light');
    const pressed = press(forTab, 'sal_1', 'itm_1', 1);
    expect(pending(forTab, 'sal_1')).toEqual(pressed);
    expect(waitingFor(forTab)).toEqual([]);
  } finally {
    for (const name of ['localStorage', 'sessionStorage']) Reflect.deleteProperty(globalThis, name);
  }
});

test('who signs in while the storage is full is signed in', async () => {
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  const { adopt, bearer, person } = await import('../src/api/session');
  const who = { id: 'usr_1', displayName: 'Alice', role: 'CUSTOMER' as const };
  const expires = new Date(Date.now() + 900_000).toISOString();
  adopt({ accessToken: 'token', accessTokenExpiresAt: expires } as never, who as never);
  expect(person.value).toEqual(who);
  expect(await bearer()).toBe('token');
});
