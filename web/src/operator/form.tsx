import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { toFault } from '@seckill/client/fault';
import type { Failure } from '@seckill/client/types';
import { bounded } from '../forms/bounded';
import { faultText, explain } from '../i18n/text';
import { now } from '../api/clock';
import { instant, localInput, type AdminSale } from './acts';
import { ot } from './texts';

/** A field with its label above it. */
export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="grid content-start gap-1.5 font-medium">
      {label}
      {children}
    </label>
  );
}

/** The values of a form, trimmed, by the names of its fields. Unchecked boxes are missing. */
export type Values = Record<string, string>;

function values(form: HTMLFormElement): Values {
  const found: Values = {};
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') found[name] = value.trim();
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
  const submit = async (form: HTMLFormElement): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      const failures = [(await send(values(form), form)) ?? []].flat();
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
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
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
      <div class={`flex flex-wrap gap-3 ${sticky ? 'sticky bottom-0 z-10 -mx-4 border-t border-line bg-page px-4 py-3' : ''}`}>
        <button class="btn btn-main" aria-disabled={sending.value}>
          {sending.value && <span class="spin" />}
          {label}
        </button>
        {beside}
      </div>
    </form>
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

/** The name of a template. */
export function TemplateName({ title }: { title: string }) {
  return (
    <Field label={ot('op.name')}>
      <input name="name" class="field font-normal" ref={bounded({ most: 120 })} required defaultValue={title} />
    </Field>
  );
}

/** The accent colour of a sale: typed, or picked. Empty is that of the installation. */
export function Accent({ color }: { color: string }) {
  const value = useSignal(color);
  const set = (event: { currentTarget: HTMLInputElement }): void => void (value.value = event.currentTarget.value);
  return (
    <div class="flex items-end gap-2">
      <div class="min-w-0 grow">
        <Field label={ot('op.accent')}>
          <input name="accent" class="field font-normal" pattern="#[0-9a-fA-F]{6}" placeholder="#2b34d9" value={value.value} onInput={set} />
        </Field>
      </div>
      <input
        type="color"
        class="h-12 w-14 shrink-0 cursor-pointer rounded-xl border border-edge bg-card p-1"
        aria-label={ot('op.accentPick')}
        value={/^#[0-9a-f]{6}$/i.test(value.value) ? value.value.toLowerCase() : '#2b34d9'}
        onInput={set}
      />
    </div>
  );
}

/** Title, rules and accent of a sale. */
export function Texts({ sale }: { sale: Pick<AdminSale, 'title' | 'rules' | 'accent'> }) {
  return (
    <>
      <Field label={ot('op.saleTitle')}>
        <input name="title" class="field font-normal" ref={bounded({ most: 120 })} required defaultValue={sale.title} />
      </Field>
      <Field label={ot('op.rules')}>
        <textarea name="rules" class="field font-normal" rows={6} ref={bounded({ most: 10_000 })} defaultValue={sale.rules} />
      </Field>
      <Accent color={sale.accent?.color ?? ''} />
    </>
  );
}

/** A ref that refuses times that have passed where they are typed. */
function future(field: HTMLInputElement | null): void {
  if (!field) return;
  const check = (): void => field.setCustomValidity(field.value && Date.parse(instant(field.value)) <= now() ? ot('op.passed') : '');
  field.oninput = check;
  check();
}

/** The opening and the end of a sale, or the end alone. */
export function Times({ sale, endOnly }: { sale: { startsAt: string; endsAt: string }; endOnly?: boolean }) {
  const field = (name: string, at: string) => (
    <input name={name} class="field font-normal max-sm:px-2 max-sm:text-sm" type="datetime-local" step="1" required ref={future} defaultValue={localInput(Date.parse(at))} />
  );
  return (
    <>
      {!endOnly && <Field label={ot('op.starts')}>{field('starts', sale.startsAt)}</Field>}
      <Field label={ot('op.ends')}>{field('ends', sale.endsAt)}</Field>
      <p class="col-span-full text-sm text-soft">{ot('op.local', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone })}</p>
    </>
  );
}
