import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { toFault } from '@seckill/client/fault';
import type { Failure } from '@seckill/client/types';
import { bounded } from '../forms/bounded';
import { explain, faultText, t } from '../i18n/text';
import { ot } from './texts';

type Typed = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** What is wrong with a field, in the language of the page; null where nothing is. */
function flawOf(field: Typed): (() => string) | null {
  const { validity, validationMessage: said } = field;
  const { min = '', max = '', placeholder = '' } = field as Partial<HTMLInputElement>;
  if (validity.valid) return null;
  if (validity.valueMissing) return () => t('form.required');
  if (validity.customError) return () => said;
  if (validity.rangeUnderflow) return () => ot('op.form.least', { n: min });
  if (validity.rangeOverflow) return () => ot('op.form.most', { n: max });
  if (validity.patternMismatch) return () => ot('op.form.pattern', { text: placeholder });
  return () => ot(validity.typeMismatch ? 'op.form.address' : 'op.form.value');
}

/** A field with its label above it. What is wrong with it shows below: once it was left or sent, and times while they are typed. */
export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  const id = useId();
  const flaw = useSignal<(() => string) | null>(null);
  const check = ({ target }: Event, when: (field: Typed) => boolean): void => {
    const field = target as Typed;
    if (!field.validity || !when(field)) return;
    const before = flaw.peek();
    flaw.value = flawOf(field);
    if (!flaw.peek() && !before) return;
    if (!field.hasAttribute('aria-describedby')) field.setAttribute('aria-describedby', id);
    field.setAttribute('aria-invalid', String(flaw.peek() !== null));
  };
  return (
    <div
      class="grid content-start gap-1.5"
      data-field
      onInput={(event) => check(event, ({ dataset, validity }) => flaw.peek() !== null || ('when' in dataset && !validity.patternMismatch))}
      onChange={(event) => check(event, () => flaw.peek() !== null)}
      onFocusOut={(event) => !(event.relatedTarget instanceof HTMLButtonElement) && check(event, ({ value }) => value !== '')} // a line above a pressed button would move it away
      onInvalidCapture={(event) => (event.preventDefault(), check(event, () => true))}
    >
      <label class="grid gap-1.5 font-medium">
        {label}
        {children}
      </label>
      <p id={id} class="text-sm font-medium text-danger empty:hidden" aria-live="polite">
        {flaw.value?.()}
      </p>
    </div>
  );
}

/** Shows what is wrong with the fields of a form, the first of which gets the focus. Returns whether it can be sent. */
function ready(form: HTMLFormElement): boolean {
  if (form.checkValidity()) return true;
  const first = form.querySelector<Typed>(':is(input, textarea, select):invalid');
  if (first?.closest('[data-field]')) first.focus();
  else first?.reportValidity();
  return false;
}

/** The values of a form, trimmed, by the names of its fields, and of the button that sent it. Unchecked boxes are missing. */
export type Values = Record<string, string>;

export function valuesOf(form: HTMLFormElement, button: HTMLElement | null = null): Values {
  const found: Values = {};
  for (const [name, value] of new FormData(form, button)) if (typeof value === 'string') found[name] = value.trim();
  return found;
}

/** Names of fields in forms, by the names of the API, where they differ. */
const inputNames: Record<string, string> = {
  startsAt: 'starts',
  endsAt: 'ends',
  purchaseLimit: 'limit',
  paymentWindowSeconds: 'window',
  hideExactStock: 'hide',
  requiresAddress: 'address',
  limitBy: 'limit-by-contact',
  requireVerifiedContact: 'contact',
  minimumAccountAge: 'age',
  captchaRequired: 'required',
  entrySeconds: 'entry',
  offerSeconds: 'offer',
  authorizeEntries: 'authorize',
  goodsId: 'goods',
  reason: 'note',
};

/** The words of a label, without those of its control and without an addition in brackets. */
function wordsOf(label: Element | null | undefined): string {
  const own = [...(label?.childNodes ?? [])].filter((node) => node.nodeType === Node.TEXT_NODE);
  return own.map((node) => node.textContent).join('').trim().replace(/\s*[(（][^()（）]*[)）]$/, '');
}

/** What a form calls the field at a path of the API; null where the form has no such field. */
export function labelIn(form: HTMLFormElement, path: readonly string[]): string | null {
  const index = path.findIndex((part) => /^\d+$/.test(part));
  for (const part of [...path].reverse()) {
    const name = inputNames[part] ?? part;
    const found = index < 0 ? form.elements.namedItem(name) : [...form.querySelectorAll(`[name^="${CSS.escape(name)}-"]`)][Number(path[index])];
    const field = found instanceof RadioNodeList ? (found[0] as Element) : found;
    if (!field) continue;
    const label = wordsOf((field as HTMLInputElement).labels?.[0] ?? field.closest('label')) || field.getAttribute('aria-label');
    const group = index < 0 ? '' : wordsOf(field.closest('fieldset')?.querySelector('legend'));
    if (label) return group ? `${group} · ${label}` : label;
  }
  return null;
}

/** A refusal, with the name of the field that it is about as the form has it. */
export function words(failure: Failure, form: HTMLFormElement): string {
  const label = labelIn(form, failure.path?.slice(1) ?? []);
  if (failure.code !== 'INVALID_INPUT') return label ? ot('op.named', { name: label, text: explain(failure) }) : explain(failure);
  const [, colon = ': ', rule = failure.message] = /^[^:：]*(: |：)(.*)$/s.exec(failure.message) ?? []; // the server's name of the field, and the rule
  if (label) return label + colon + rule;
  return rule.charAt(0).toUpperCase() + rule.slice(1);
}

interface Props {
  /** Sends the values; returns the refusals, if any. */
  send: (values: Values, form: HTMLFormElement) => Promise<Failure | readonly Failure[] | null | undefined>;
  /** Called after success. */
  done: () => void;
  /** The words of the button. */
  label: string;
  children?: ComponentChildren;
  /** Beside the button. */
  beside?: ComponentChildren;
  class?: string;
  /** Whether the button stays on the screen. */
  sticky?: boolean;
}

/** A form that cannot be sent twice and says why it was refused. */
export function Form({ send, done, label, children, beside, class: layout = 'grid gap-3', sticky }: Props) {
  const sending = useSignal(false);
  const why = useSignal<(() => string)[]>([]); // functions, so that a change of the language applies
  const submit = async (form: HTMLFormElement, button: HTMLElement | null): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      const failures = [(await send(valuesOf(form, button), form)) ?? []].flat();
      why.value = failures.map((failure) => () => words(failure, form));
      if (!failures.length) done();
    } catch (thrown) {
      why.value = [() => faultText(toFault(thrown))];
    } finally {
      sending.value = false;
    }
  };
  return (
    <form
      class={layout}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (ready(event.currentTarget)) void submit(event.currentTarget, event.submitter);
      }}
    >
      {children}
      {why.value.length > 0 && (
        <div class="font-medium text-warn wrap-anywhere" role="alert">
          {why.value.map((line) => (
            <p key={line()}>{line()}</p>
          ))}
        </div>
      )}
      <div class={`flex flex-wrap gap-3 ${sticky ? 'sticky bottom-0 z-10 -mx-4 border-t border-line bg-page px-4 py-3 in-[dialog]:-bottom-5 in-[dialog]:-mx-5 in-[dialog]:bg-card in-[dialog]:px-5' : ''}`}>
        <button class="btn btn-main" aria-disabled={sending.value}>
          {sending.value && <span class="spin" />}
          {label}
        </button>
        {beside}
      </div>
    </form>
  );
}

/** Says that a form was filled with what was typed before, and can be begun again. */
export function Restored({ discard }: { discard: () => void }) {
  return (
    <p class="note flex flex-wrap items-center gap-x-4 -order-1" role="status">
      {ot('op.unsent')}
      <button type="button" class="link" onClick={discard}>
        {ot('op.unsent.discard')}
      </button>
    </p>
  );
}

/** A field for a reason or a note. */
export function Note({ label, required }: { label: string; required?: boolean }) {
  return (
    <Field label={label}>
      <textarea name="note" class="field font-normal" rows={2} ref={bounded({ most: 200 })} required={required} />
    </Field>
  );
}
