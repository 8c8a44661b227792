/** Sign in and create an account. */
import { useSignal } from '@preact/signals';
import { useEffect, useId } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import { toFault } from '@seckill/client/fault';
import { http } from '../api/http';
import { adopt, person } from '../api/session';
import type { Challenge, Failure } from '@seckill/client/types';
import { Login, Register } from '../documents/account';
import type { Key } from '../i18n/en';
import { apologise, explain, t } from '../i18n/text';
import type { Answer } from '@seckill/client/purchase';
import { Title } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { lazy } from '../ui/lazy';
import { useTitle } from '../ui/title';
import { Providers, phoneCountry } from './providers';

const Check = lazy(() => import('../captcha/check').then((module) => module.Check));

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
  const fields = useSignal<Fields>({ account: '', password: '', displayName: '', oneTimeCode: '' });
  const needsCode = useSignal(false);
  const visible = useSignal(false);
  const title = t(isNew ? 'sign.up' : 'sign.in');
  useTitle(title);

  useEffect(() => {
    if (person.value) go(next, { replace: true });
  }, [person.value]);
  useEffect(() => {
    state.value = { state: 'filling', why: null };
    needsCode.value = false;
  }, [isNew]);

  const submit = async (answer: Answer | null): Promise<void> => {
    if (isNew && !answer) {
      state.value = { state: 'checking', challenge: null, failure: null };
      return;
    }
    state.value = { state: 'sending' };
    try {
      const payload = await send(fields.peek(), isNew, answer);
      if (payload?.tokens && payload.user) return adopt(payload.tokens, payload.user);
      const failure = payload?.userErrors[0];
      if (failure?.code === 'CAPTCHA_REQUIRED' || failure?.code === 'CAPTCHA_INVALID') {
        const challenge = failure.__typename === 'CaptchaError' ? failure.challenge : null;
        state.value = { state: 'checking', challenge, failure };
      } else {
        if (failure?.code === 'ONE_TIME_CODE_REQUIRED') needsCode.value = true;
        state.value = { state: 'filling', why: () => payload?.userErrors.map(explain).join(' ') || t('fault.INTERNAL') };
      }
    } catch (thrown) {
      state.value = { state: 'filling', why: () => apologise(toFault(thrown)) };
    }
  };

  const sending = state.value.state === 'sending';
  const field = (name: keyof Fields) => ({
    value: fields.value[name],
    onInput: (event: { currentTarget: HTMLInputElement }) =>
      void (fields.value = { ...fields.peek(), [name]: event.currentTarget.value }),
  });

  return (
    <div class="page max-w-md">
      <Title>{title}</Title>
      <form
        class="card mt-5 grid gap-4 p-5"
        onSubmit={(event) => {
          event.preventDefault();
          if (!sending) void submit(null);
        }}
      >
        {state.value.state === 'filling' && state.value.why && (
          <p class="note font-medium text-warn" role="alert">
            {state.value.why()}
          </p>
        )}
        {isNew && (
          <Field label="sign.name">
            {(id) => <input id={id} class="field" autocomplete="nickname" required maxLength={32} {...field('displayName')} />}
          </Field>
        )}
        <Field label="sign.account" hint={phoneCountry.value ? 'sign.accountHint' : 'sign.accountHintAny'}>
          {(id) => (
            <input
              id={id}
              aria-describedby={`${id}-hint`}
              class="field"
              autocomplete="username"
              autocapitalize="off"
              spellcheck={false}
              required
              minLength={3}
              maxLength={254}
              {...field('account')}
            />
          )}
        </Field>
        <Field label="sign.password" hint={isNew ? 'sign.passwordHint' : undefined}>
          {(id) => (
            <input
              id={id}
              aria-describedby={isNew ? `${id}-hint` : undefined}
              class="field"
              type={(visible.value ? 'text' : 'password') as 'password'}
              autocomplete={isNew ? 'new-password' : 'current-password'}
              required
              minLength={isNew ? 10 : 1}
              maxLength={128}
              {...field('password')}
            />
          )}
        </Field>
        {needsCode.value && (
          <Field label="sign.code" hint="sign.codeHint">
            {(id) => <input id={id} aria-describedby={`${id}-hint`} class="field" autocomplete="one-time-code" required maxLength={32} {...field('oneTimeCode')} />}
          </Field>
        )}
        <label class="flex items-center gap-2 text-sm">
          <input type="checkbox" class="size-4 accent-fill" checked={visible.value} onChange={() => (visible.value = !visible.value)} />
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
        <Dialog title={t('check.title')} close={() => (state.value = { state: 'filling', why: null })}>
          <Check
            purpose={isNew ? 'REGISTER' : 'LOGIN'}
            challenge={state.value.challenge}
            failure={state.value.failure}
            onAnswer={(answer) => void submit(answer)}
          />
        </Dialog>
      )}
    </div>
  );
}

/** A labelled field with a hint. */
function Field(props: { label: Key; hint?: Key | undefined; children: (id: string) => preact.JSX.Element }) {
  const id = useId();
  return (
    <div class="grid gap-1.5">
      <label for={id} class="font-medium">
        {t(props.label)}
      </label>
      {props.children(id)}
      {props.hint && (
        <p id={`${id}-hint`} class="text-sm text-soft">
          {t(props.hint)}
        </p>
      )}
    </div>
  );
}
