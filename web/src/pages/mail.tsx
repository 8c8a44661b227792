/** The pages behind the links of e-mails, and the one that asks for a link to choose a password. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { http } from '../api/http';
import { currentUser, signOut } from '../api/session';
import { ConfirmEmail, RequestPasswordReset, ResetPassword } from '../documents/account';
import { t } from '../i18n/text';
import { Ask } from '../ui/ask';
import { SuccessMessage, Title } from '../ui/bits';
import { useTitle } from '../ui/title';

/** The token in the fragment of the URL. Browsers do not send fragments to servers. */
const secretOfLink = (): string => decodeURIComponent(location.hash.slice(1));

/** Asks for a link to choose a password. The answer is the same without an account. */
export function Forgot() {
  const done = useSignal(false);
  useTitle(t('forgot.title'));
  return (
    <div class="page grid max-w-md gap-5">
      <Title>{t('forgot.title')}</Title>
      {done.value ? (
        <div class="card p-5" role="status">
          <SuccessMessage>{t('forgot.done')}</SuccessMessage>
        </div>
      ) : (
        <section class="card grid gap-3 p-5">
          <p class="text-soft">{t('forgot.hint')}</p>
          <Ask
            label="forgot.send"
            fields={[{ name: 'account', label: 'sign.account', kind: 'username' }]}
            send={async ({ account = '' }) => {
              const { requestPasswordReset } = await http.post(RequestPasswordReset, { input: { account } }, null);
              const failure = requestPasswordReset?.userErrors[0];
              done.value = !failure;
              return failure;
            }}
          />
        </section>
      )}
      <Link class="link" href="/sign-in">
        {t('forgot.back')}
      </Link>
    </div>
  );
}

/** Chooses a password with the secret of a link. */
export function Reset() {
  const done = useSignal(false);
  useTitle(t('reset.title'));
  return (
    <div class="page grid max-w-md gap-5">
      <Title>{t('reset.title')}</Title>
      {done.value ? (
        <div class="card grid gap-3 p-5" role="status">
          <SuccessMessage>{t('reset.done')}</SuccessMessage>
        </div>
      ) : (
        <section class="card grid gap-3 p-5">
          <p class="text-soft">{t('sign.passwordHint')}</p>
          <Ask
            label="reset.save"
            fields={[{ name: 'newPassword', label: 'account.next', kind: 'new-password' }]}
            send={async ({ newPassword = '' }) => {
              const { resetPassword } = await http.post(ResetPassword, { input: { token: secretOfLink() || '-', newPassword } }, null);
              const failure = resetPassword?.userErrors[0];
              if (failure) return failure;
              if (currentUser.peek()) await signOut(false);
              done.value = true;
              return null;
            }}
          />
        </section>
      )}
      <Link class="link" href={done.value ? '/sign-in' : '/forgot-password'}>
        {t(done.value ? 'sign.in' : 'reset.again')}
      </Link>
    </div>
  );
}

/** Uses the link that verifies an address, once its reader presses the button: programs that scan e-mails open links too. */
export function VerifyEmail() {
  const email = useSignal<string | null>(null);
  useTitle(t('verify.title'));
  return (
    <div class="page grid max-w-md gap-5">
      <Title>{t('verify.title')}</Title>
      <div class="card grid gap-3 p-5">
        {email.value === null ? (
          <>
            <p class="text-soft">{t('verify.ask')}</p>
            <Ask
              label="verify.confirm"
              fields={[]}
              send={async () => {
                const { confirmEmail } = await http.post(ConfirmEmail, { input: { token: secretOfLink() || '-' } }, null);
                const failure = confirmEmail?.userErrors[0];
                if (!failure) email.value = confirmEmail?.email ?? '';
                return failure;
              }}
            />
          </>
        ) : (
          <div class="wrap-anywhere" role="status">
            <SuccessMessage>{t('verify.done', { email: email.value })}</SuccessMessage>
          </div>
        )}
      </div>
      <Link class="link" href={currentUser.value ? '/account' : '/'}>
        {t(currentUser.value ? 'account.title' : 'nav.sales')}
      </Link>
    </div>
  );
}
