/** A short form of the account page. */
import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { toFault } from '@seckill/client/fault';
import type { Failure } from '@seckill/client/types';
import { bounded } from '../forms/bounded';
import { newAccount } from '../forms/rules';
import type { Key } from '../i18n/en';
import { faultText, explain, t } from '../i18n/text';

/** A field: a password, a one-time code, or an e-mail address or phone number. */
export interface Asked {
  name: string;
  label: Key;
  kind: 'current-password' | 'new-password' | 'one-time-code' | 'username';
}

const types = { 'current-password': 'password', 'new-password': 'password', 'one-time-code': 'text', username: 'text' };
const bounds = { 'current-password': { most: 128 }, 'new-password': newAccount.password, 'one-time-code': { most: 32 }, username: { most: 254 } };

interface Props {
  fields: readonly Asked[];
  label: Key;
  /** Sends the values by the names of the fields; returns the refusal, if any. */
  send: (values: Record<string, string>) => Promise<Failure | null | undefined>;
}

/** Fields with one button. It cannot be sent twice, and says why it was refused. */
export function Ask({ fields, label, send }: Props) {
  const sending = useSignal(false);
  const why = useSignal<(() => string) | null>(null); // in the language of the moment
  const id = useId();
  const submit = async (form: HTMLFormElement): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
      const failure = await send(values);
      why.value = failure ? () => explain(failure) : null;
      if (!failure) form.reset();
    } catch (thrown) {
      why.value = () => faultText(toFault(thrown));
    } finally {
      sending.value = false;
    }
  };
  return (
    <form
      class="grid gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      {fields.map(({ name, label: text, kind }) => (
        <div key={name} class="grid gap-1.5">
          <label for={`${id}-${name}`} class="font-medium">
            {t(text)}
          </label>
          <input
            id={`${id}-${name}`}
            name={name}
            class="field"
            type={types[kind] as 'password'}
            autocomplete={kind as 'current-password'}
            required
            ref={bounded(bounds[kind])}
          />
        </div>
      ))}
      {why.value && (
        <p class="font-medium text-warn" role="alert">
          {why.value()}
        </p>
      )}
      <button class="btn btn-main justify-self-start" aria-disabled={sending.value}>
        {sending.value && <span class="spin" />}
        {t(label)}
      </button>
    </form>
  );
}
