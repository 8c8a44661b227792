/** Sign in and create an account. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import { toFault } from '@seckill/client/fault';
import { http } from '../api/http';
import { startSession, currentUser } from '../api/session';
import type { Challenge, Failure } from '@seckill/client/types';
import { Login, Register } from '../documents/account';
import { Field, useFields } from '../forms/fields';
import { account, displayName, password, required } from '../forms/rules';
import { faultText, explain, t } from '../i18n/text';
import type { Answer } from '@seckill/client/purchase';
import { Title } from '../ui/bits';
import { lazy } from '../ui/lazy';
import { useTitle } from '../ui/title';
import { Providers, phoneCountry } from './providers';

const Check = lazy(() => import('../captcha/check').then((module) => module.Captcha));

/** The state of the form. */
type State =
  | { state: 'filling'; why: (() => string) | null }
  | { state: 'checking'; challenge: Challenge | null; failure: Failure | null }
  | { state: 'sending' };

/** The page to return to, which must belong to this shop. */
export function safeNext(search: string): string {
  const next = new URLSearchParams(search).get('next') ?? '/';
  return /^\/(?![/\\])/.test(next) ? next : '/';
}

interface Fields {
  account: string;
  password: string;
  displayName: string;
  oneTimeCode: string;
}

async function send(fields: Fields, isNew: boolean, answer: Answer | null) {
  const { account, password, displayName, oneTimeCode } = fields;
  const captcha = answer && { challengeId: answer.challengeId, answer: answer.answer };
  if (!isNew) {
    const input = { account, password, ...(captcha && { captcha }), ...(oneTimeCode && { oneTimeCode }) };
    return (await http.post(Login, { input }, null)).login;
  }
  return (await http.post(Register, { input: { account, password, displayName, captcha: captcha! } }, null)).register;
}

/** The page; `isNew` makes it the one for a new account. */
export function Sign({ isNew }: { isNew: boolean }) {
  const search = useSearch();
  const [, go] = useLocation();
  const next = safeNext(search);
  const state = useSignal<State>({ state: 'filling', why: null });
  const needsCode = useSignal(false);
  const form = useFields<keyof Fields>(
    { displayName: '', account: '', password: '', oneTimeCode: '' },
    {
      displayName: isNew ? displayName : () => null,
      account: isNew ? account(phoneCountry.value) : required,
      password: (value, { account: of }) => (isNew ? password(of) : required)(value),
      oneTimeCode: needsCode.value ? required : () => null,
    },
  );
  const visible = useSignal(false);
  const title = t(isNew ? 'sign.up' : 'sign.in');
  useTitle(title);

  useEffect(() => {
    if (currentUser.value) go(next, { replace: true });
  }, [currentUser.value]);
  useEffect(() => {
    state.value = { state: 'filling', why: null };
    needsCode.value = false;
    form.forget();
  }, [isNew]);

  const submit = async (answer: Answer | null): Promise<void> => {
    if (isNew && !answer) {
      state.value = { state: 'checking', challenge: null, failure: null };
      return;
    }
    state.value = { state: 'sending' };
    try {
      const payload = await send(form.values(), isNew, answer);
      if (payload?.tokens && payload.user) return startSession(payload.tokens, payload.user);
      const failure = payload?.userErrors[0];
      if (failure?.code === 'CAPTCHA_REQUIRED' || failure?.code === 'CAPTCHA_INVALID') {
        const challenge = failure.__typename === 'CaptchaError' ? failure.challenge : null;
        state.value = { state: 'checking', challenge, failure };
      } else {
        if (failure?.code === 'ONE_TIME_CODE_REQUIRED') needsCode.value = true;
        const failures = payload?.userErrors ?? [];
        const others = isNew ? form.refuse(failures) : failures;
        const why = others.length || !failures.length ? () => others.map(explain).join(' ') || t('fault.INTERNAL') : null;
        state.value = { state: 'filling', why };
      }
    } catch (thrown) {
      state.value = { state: 'filling', why: () => faultText(toFault(thrown)) };
    }
  };

  const sending = state.value.state === 'sending';
  return (
    <div class="page max-w-md">
      <Title>{title}</Title>
      <form
        class="card mt-5 grid gap-4 p-5"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!sending && form.ready()) void submit(null);
        }}
      >
        {state.value.state === 'filling' && state.value.why && (
          <p class="note font-medium text-warn" role="alert">
            {state.value.why()}
          </p>
        )}
        {isNew && (
          <Field form={form} name="displayName" label={t('sign.name')}>
            {(bound) => <input {...bound} autocomplete="nickname" required />}
          </Field>
        )}
        <Field form={form} name="account" label={t('sign.account')} hint={t(phoneCountry.value ? 'sign.accountHint' : 'sign.accountHintAny')}>
          {(bound) => <input {...bound} autocomplete="username" autocapitalize="off" spellcheck={false} required />}
        </Field>
        <Field form={form} name="password" label={t('sign.password')} hint={isNew ? t('sign.passwordHint') : undefined}>
          {(bound) => (
            <input
              {...bound}
              type={(visible.value ? 'text' : 'password') as 'password'}
              autocomplete={isNew ? 'new-password' : 'current-password'}
              required
            />
          )}
        </Field>
        {needsCode.value && (
          <Field form={form} name="oneTimeCode" label={t('sign.code')} hint={t('sign.codeHint')}>
            {(bound) => <input {...bound} autocomplete="one-time-code" required />}
          </Field>
        )}
        <label class="flex items-center gap-2 text-sm">
          <input type="checkbox" class="size-4 accent-ink" checked={visible.value} onChange={() => (visible.value = !visible.value)} />
          {t('sign.show')}
        </label>
        <button class="btn btn-main min-h-12" aria-disabled={sending}>
          {sending && <span class="spin" />}
          {sending ? t('sign.working') : title}
        </button>
        <Link class="link justify-self-center" href={`/${isNew ? 'sign-in' : 'register'}?next=${encodeURIComponent(next)}`}>
          {t(isNew ? 'sign.toIn' : 'sign.toUp')}
        </Link>
      </form>
      <Providers search={search} next={next} isNew={isNew} />
      {state.value.state === 'checking' && (
        <Check
          purpose={isNew ? 'REGISTER' : 'LOGIN'}
          challenge={state.value.challenge}
          failure={state.value.failure}
          onAnswer={(answer) => void submit(answer)}
          close={() => (state.value = { state: 'filling', why: null })}
        />
      )}
    </div>
  );
}
