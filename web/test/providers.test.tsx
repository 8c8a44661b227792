import { render } from 'preact';
import { afterEach, expect, test, vi } from 'vitest';
import { currentUser } from '../src/api/session';
import { setLanguage } from '../src/i18n/text';
import { Providers } from '../src/pages/providers';
import { server } from './shop';

afterEach(() => {
  vi.unstubAllGlobals();
  render(null, document.body);
});

const list = { signInProviders: [{ title: 'Corp', url: '/auth/oidc/corp/start' }] };

test('a provider leads back to the page, and its session is taken over', async () => {
  await setLanguage('en');
  const expires = new Date(Date.now() + 300_000).toISOString();
  const asked = server({
    SignInProviders: [list],
    RefreshSession: [{ refreshSession: { tokens: { accessToken: 'a', accessTokenExpiresAt: expires }, userErrors: [] } }],
    Viewer: [{ viewer: { id: 'usr_1', displayName: 'Ann', role: 'CUSTOMER' } }],
  });
  render(<Providers search="?oidc=done&next=%2Forders" next="/orders" />, document.body);
  await vi.waitFor(() => expect(document.querySelector('a')?.textContent).toBe('Continue with Corp'));
  expect(document.querySelector('a')!.getAttribute('href')).toBe(
    `/auth/oidc/corp/start?to=${encodeURIComponent('/sign-in?oidc=done&next=%2Forders')}`,
  );
  await vi.waitFor(() => expect(currentUser.value?.displayName).toBe('Ann'));
  expect(asked.map(({ name }) => name).sort()).toEqual(['RefreshSession', 'SignInProviders', 'Viewer']);
});

test('the reason of a failed sign-in is shown, an unknown one in general words', async () => {
  await setLanguage('en');
  server({ SignInProviders: [list, list] });
  render(<Providers search="?oidc=taken" next="/" />, document.body);
  expect(document.querySelector('[role=alert]')!.textContent).toContain('There is an account with this e-mail address');
  render(null, document.body);
  render(<Providers search="?oidc=%3Cb%3E" next="/" />, document.body);
  expect(document.querySelector('[role=alert]')!.textContent).toBe('The sign-in did not work. Please try again.');
});
