/** Sign-in with the accounts of other providers, and without the password. */
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { http } from '../api/http';
import { resume } from '../api/session';
import { SignInProviders } from '../documents/account';
import { textOr, t } from '../i18n/text';

/** The outcome of a sign-in at a provider, in the address to which the server returns. */
const OUTCOME = 'oidc';

/** Country of phone numbers without a country code; null = there is none, undefined = it is not known yet. */
export const phoneCountry = signal<string | null | undefined>(undefined);

/** A link for each provider; after the return from one, the session or the reason of the failure. */
export function Providers({ search, next, isNew }: { search: string; next: string; isNew?: boolean }) {
  const found = useSignal<{ title: string; url: string }[]>([]);
  const mail = useSignal<boolean | null>(null);
  const asked = useSignal(false);
  const outcome = useSignal(new URLSearchParams(search).get(OUTCOME));

  useEffect(() => {
    http.post(SignInProviders, {}, null)
      .then(({ signInProviders, serverInfo }) => {
        found.value = signInProviders;
        mail.value = serverInfo?.mail === true;
        if (serverInfo) phoneCountry.value = serverInfo.phoneCountry;
      })
      .catch(() => {}) // the form works without them
      .finally(() => (asked.value = true));
    if (outcome.peek() !== 'done') return;
    resume()
      .catch(() => false)
      .then((signedIn) => (outcome.value = signedIn ? null : 'failed'));
  }, []);

  const to = encodeURIComponent(`/sign-in?${OUTCOME}=done&next=${encodeURIComponent(next)}`);
  return (
    <>
      {!asked.value && <span data-waits />}
      {mail.value && !isNew && (
        <Link class="link mt-4 block text-center" href="/forgot-password">
          {t('sign.forgot')}
        </Link>
      )}
      {mail.value === false && !isNew && <p class="mt-4 text-center text-sm text-soft">{t('forgot.askShop')}</p>}
      {outcome.value && outcome.value !== 'done' && (
        <p class="note mt-5 font-medium text-warn" role="alert">
          {textOr(`sign.oidc.${outcome.value}`, t('sign.oidc.failed'))}
        </p>
      )}
      {found.value.length > 0 && (
        <ul class="mt-4 grid gap-2">
          {found.value.map(({ title, url }) => (
            <li key={url}>
              <a class="btn min-h-12 w-full" href={`${url}?to=${to}`}>
                {t('sign.with', { title })}
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
