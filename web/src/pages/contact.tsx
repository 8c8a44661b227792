/** The e-mail address and the personal data, on the account page. */
import { useSignal } from '@preact/signals';
import { useLocation } from 'wouter-preact';
import { request } from '../api/client';
import { signOut } from '../api/session';
import { DeleteAccount, ExportPersonalData, RequestEmail } from '../documents/account';
import { t } from '../i18n/text';
import { Ask } from '../ui/ask';
import { SuccessMessage } from '../ui/bits';

/** The field for a one-time code, if sign-in needs one. */
export function codeField(codes: boolean) {
  return codes ? [{ name: 'oneTimeCode', label: 'sign.code', kind: 'one-time-code' } as const] : [];
}

/** The e-mail address or phone number: its verification, and the change to another one. */
export function Email({ account, verified, codes }: { account: string; verified: boolean; codes: boolean }) {
  const sentTo = useSignal('');
  const ask = async (email: string, currentPassword?: string, oneTimeCode?: string) => {
    sentTo.value = '';
    const { requestEmail } = await request(RequestEmail, {
      input: { email, ...(currentPassword && { currentPassword }), ...(oneTimeCode && { oneTimeCode }) },
    });
    const failure = requestEmail?.userErrors[0];
    if (!failure) sentTo.value = email;
    return failure;
  };
  const isEmail = account.includes('@');
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{t('mail.head')}</h2>
      {verified && <SuccessMessage>{t(isEmail ? 'mail.verified' : 'mail.numberVerified')}</SuccessMessage>}
      {!verified && (
        <>
          <p class="text-soft">{t(isEmail ? 'mail.unverified' : 'mail.numberUnverified')}</p>
          <Ask label="mail.sendLink" fields={[]} send={() => ask(account)} />
        </>
      )}
      {sentTo.value && (
        <div class="wrap-anywhere" role="status">
          <SuccessMessage>{t('mail.sent', { email: sentTo.value })}</SuccessMessage>
        </div>
      )}
      <details>
        <summary class="link">{t('mail.change')}</summary>
        <div class="mt-3">
          <Ask
            label="mail.sendLink"
            fields={[
              { name: 'email', label: 'mail.next', kind: 'username' },
              { name: 'currentPassword', label: 'account.current', kind: 'current-password' },
              ...codeField(codes),
            ]}
            send={({ email = '', currentPassword = '', oneTimeCode }) => ask(email, currentPassword, oneTimeCode)}
          />
        </div>
      </details>
    </section>
  );
}

/** Lets the browser save a document. */
function save(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

/** Download of the personal data, and deletion of the account. */
export function PersonalData({ codes, customer }: { codes: boolean; customer: boolean }) {
  const [, go] = useLocation();
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{t('data.head')}</h2>
      <details>
        <summary class="link">{t('data.export')}</summary>
        <div class="mt-3">
          <Ask
            label="data.export"
            fields={[{ name: 'currentPassword', label: 'account.current', kind: 'current-password' }, ...codeField(codes)]}
            send={async ({ currentPassword = '', oneTimeCode }) => {
              const { exportPersonalData } = await request(ExportPersonalData, { input: { currentPassword, ...(oneTimeCode && { oneTimeCode }) } });
              if (exportPersonalData?.document) save('personal-data.json', exportPersonalData.document);
              return exportPersonalData?.userErrors[0];
            }}
          />
        </div>
      </details>
      {customer && (
        <details>
          <summary class="link">{t('data.delete')}</summary>
          <p class="mt-3 text-soft">{t('data.deleteHint')}</p>
          <div class="mt-3">
            <Ask
              label="data.delete"
              fields={[
                { name: 'currentPassword', label: 'account.current', kind: 'current-password' },
                ...codeField(codes),
              ]}
              send={async ({ currentPassword = '', oneTimeCode }) => {
                const { deleteAccount } = await request(DeleteAccount, { input: { currentPassword, ...(oneTimeCode && { oneTimeCode }) } });
                if (!deleteAccount?.deleted) return deleteAccount?.userErrors[0];
                await signOut(false);
                go('/');
                return null;
              }}
            />
          </div>
        </details>
      )}
    </section>
  );
}
