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
    const { tabStore } = await import('../src/api/storage');
    const { lang } = await import('../src/i18n/lang');
    const { theme, nextTheme } = await import('../src/ui/theme');
    const { beginAttempt, pendingAttempt } = await import('@seckill/client/pending');
    const { salesWithTicket } = await import('@seckill/client/tickets');
    expect(lang.value).toBe('en');
    nextTheme();
    expect(theme.value).toBe('light');
    const pressed = beginAttempt(tabStore, 'sal_1', 'itm_1', 1);
    expect(pendingAttempt(tabStore, 'sal_1')).toEqual(pressed);
    expect(salesWithTicket(tabStore)).toEqual([]);
  } finally {
    for (const name of ['localStorage', 'sessionStorage']) Reflect.deleteProperty(globalThis, name);
  }
});

test('who signs in while the storage is full is signed in', async () => {
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  const { startSession, bearer, currentUser } = await import('../src/api/session');
  const who = { id: 'usr_1', displayName: 'Alice', role: 'CUSTOMER' as const };
  const expires = new Date(Date.now() + 900_000).toISOString();
  startSession({ accessToken: 'token', accessTokenExpiresAt: expires } as never, who as never);
  expect(currentUser.value).toEqual(who);
  expect(await bearer()).toBe('token');
});
