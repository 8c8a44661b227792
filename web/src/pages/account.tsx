/** The account of the signed-in user: password and one-time codes. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { currentUser, renewAccess } from '../api/session';
import { Account as AccountDoc, ChangePassword, ConfirmTotp, RemoveTotp, StartTotp } from '../documents/account';
import { t } from '../i18n/text';
import { Ask } from '../ui/ask';
import { SuccessMessage, Title, Unready } from '../ui/bits';
import { useTitle } from '../ui/title';
import { codeField, Email, PersonalData } from './contact';
import { Addresses } from './addresses';
import { Notices } from './notices';
import { Qr } from './qr';

export function Account() {
  useTitle(t('account.title'));
  const { page, reload } = useLoad('account', async (signal) => {
    const { viewer, serverInfo } = await request(AccountDoc, {}, signal);
    return viewer && { ...viewer, mail: serverInfo?.mail === true };
  });
  if (!currentUser.value) {
    return (
      <div class="page max-w-md">
        <Title>{t('account.title')}</Title>
        <Link class="link mt-4 inline-block" href="/sign-in?next=/account">
          {t('nav.signIn')}
        </Link>
      </div>
    );
  }
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} inset />;
  const { displayName, account, role, grantedRole, totp, contactVerified, mail } = page.value.data;
  return (
    <div class="page grid max-w-md gap-5">
      <div>
        <Title><bdi>{displayName}</bdi></Title>
        <p class="wrap-anywhere text-soft">{account}</p>
      </div>
      {grantedRole !== role && (
        <p class="note font-medium text-warn" role="status">
          {t('account.required')}
        </p>
      )}
      {mail && account && <Email account={account} verified={contactVerified === true} codes={totp === true} />}
      <Password codes={totp === true} />
      <Codes on={totp === true} changed={reload} />
      <Notices />
      <Addresses />
      <PersonalData codes={totp === true} customer={role === 'CUSTOMER'} />
    </div>
  );
}

function Password({ codes }: { codes: boolean }) {
  const done = useSignal(false);
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{t('account.password')}</h2>
      <Ask
        label="account.change"
        fields={[
          { name: 'currentPassword', label: 'account.current', kind: 'current-password' },
          { name: 'newPassword', label: 'account.next', kind: 'new-password' },
          ...codeField(codes),
        ]}
        send={async ({ currentPassword = '', newPassword = '', oneTimeCode }) => {
          done.value = false;
          const { changePassword } = await request(ChangePassword, { input: { currentPassword, newPassword, ...(oneTimeCode && { oneTimeCode }) } });
          const failure = changePassword?.userErrors[0];
          done.value = !failure;
          return failure;
        }}
      />
      {done.value && (
        <div role="status">
          <SuccessMessage>{t('account.changed')}</SuccessMessage>
        </div>
      )}
    </section>
  );
}

/** One-time codes: set up with a QR code, shown recovery codes, or turned off. */
function Codes({ on, changed }: { on: boolean; changed: () => Promise<void> }) {
  const secret = useSignal<{ text: string; uri: string } | null>(null);
  const recovery = useSignal<string[] | null>(null);
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{t('account.codes')}</h2>
      {recovery.value && (
        <div class="grid gap-3" role="status">
          <SuccessMessage>{t('account.on')}</SuccessMessage>
          <p>{t('account.recovery')}</p>
          <ul class="grid grid-cols-2 gap-2 font-mono text-sm">
            {recovery.value.map((code) => (
              <li key={code}>{code}</li>
            ))}
          </ul>
        </div>
      )}
      {on && <Remove removed={() => void (recovery.value = null, changed())} />}
      {!on && !secret.value && (
        <>
          <p class="text-soft">{t('account.codesHint')}</p>
          <Ask
            label="account.setUp"
            fields={[{ name: 'password', label: 'account.current', kind: 'current-password' }]}
            send={async ({ password = '' }) => {
              const { startTotp } = await request(StartTotp, { input: { password } });
              if (startTotp?.uri && startTotp.secret) secret.value = { uri: startTotp.uri, text: startTotp.secret };
              return startTotp?.userErrors[0];
            }}
          />
        </>
      )}
      {!on && secret.value && (
        <>
          <p>{t('account.scan')}</p>
          <Qr text={secret.value.uri} label={t('account.qr')} />
          <code class="text-sm break-all">{secret.value.text}</code>
          <Ask
            label="account.confirm"
            fields={[{ name: 'oneTimeCode', label: 'sign.code', kind: 'one-time-code' }]}
            send={async ({ oneTimeCode = '' }) => {
              const { confirmTotp } = await request(ConfirmTotp, { input: { oneTimeCode } });
              if (!confirmTotp?.recoveryCodes) return confirmTotp?.userErrors[0];
              recovery.value = confirmTotp.recoveryCodes;
              secret.value = null;
              renewAccess();
              await changed();
              return null;
            }}
          />
        </>
      )}
    </section>
  );
}

function Remove({ removed }: { removed: () => void }) {
  return (
    <>
      <SuccessMessage>{t('account.isOn')}</SuccessMessage>
      <details>
        <summary class="link">{t('account.turnOff')}</summary>
        <div class="mt-3">
          <Ask
            label="account.turnOff"
            fields={[
              { name: 'password', label: 'account.current', kind: 'current-password' },
              { name: 'oneTimeCode', label: 'sign.code', kind: 'one-time-code' },
            ]}
            send={async ({ password = '', oneTimeCode = '' }) => {
              const { removeTotp } = await request(RemoveTotp, { input: { password, oneTimeCode } });
              const failure = removeTotp?.userErrors[0];
              if (!failure) {
                renewAccess();
                removed();
              }
              return failure;
            }}
          />
        </div>
      </details>
    </>
  );
}
