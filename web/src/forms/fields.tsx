/** Forms that check their fields while the user types. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { Failure } from '@seckill/client/types';
import { explain, t } from '../i18n/text';
import type { FieldError } from './rules';

/** What an input needs from its form. */
export interface InputProps {
  id: string;
  name: string;
  class: string;
  dir: 'auto';
  value: string;
  'aria-invalid': 'true' | undefined;
  'aria-describedby': string | undefined;
  onInput: (event: { currentTarget: HTMLInputElement }) => void;
  onBlur: (event: { currentTarget: HTMLInputElement }) => void;
}

/** The rule of each field; one may depend on the other values. */
export type Rules<N extends string> = Record<N, (value: string, all: Record<N, string>) => FieldError | null>;

/** The fields of a form. */
export interface Fields<N extends string> {
  /** The values at this moment. */
  values: () => Record<N, string>;
  /** What is wrong with a field, in words; null where nothing is shown. */
  error: (name: N) => string | null;
  /** The properties of an input; `noted` is whether a hint is shown below it. */
  bind: (name: N, noted: boolean) => InputProps;
  /** Whether the form can be sent. If not, all errors are shown, and the first faulty field has the focus. */
  ready: () => boolean;
  /** Shows refusals of the server at their fields, of which the first gets the focus, and returns the others. */
  refuse: (failures: readonly Failure[]) => Failure[];
  /** Forgets all errors. */
  forget: () => void;
}

/** Returns a function that defers a call until no pointer is pressed. */
function usePointer(): (call: () => void) => void {
  const state = useRef({ pressed: false, waiting: [] as (() => void)[] });
  useEffect(() => {
    const on = new AbortController();
    const { current } = state;
    const released = (): void => {
      current.pressed = false;
      const calls = current.waiting.splice(0);
      setTimeout(() => calls.forEach((call) => call())); // after the click
    };
    addEventListener('pointerdown', () => (current.pressed = true), { capture: true, signal: on.signal });
    for (const name of ['pointerup', 'pointercancel']) addEventListener(name, released, { capture: true, signal: on.signal });
    return () => on.abort();
  }, []);
  return (call) => {
    if (state.current.pressed) state.current.waiting.push(call);
    else setTimeout(call); // after the click: the mouse events of a tap are dispatched together
  };
}

/**
 * Checks fields by their rules, in the order of `first`. A field shows its error once it was left, or after an attempt to send; from then on
 * each input checks it again. The error of a field that is left appears when no pointer is pressed: below a pressed button it would move the
 * button away, and the click would be lost.
 */
export function useFields<N extends string>(first: Record<N, string>, rules: Rules<N>): Fields<N> {
  const id = useId();
  const names = Object.keys(first) as N[];
  const values = useSignal(first);
  const checked = useSignal<readonly N[]>([]);
  const refused = useSignal<readonly Failure[]>([]);
  const whenReleased = usePointer();

  const fieldOf = (failure: Failure): N | undefined => names.find((name) => failure.path?.[1] === name);
  const inputOf = (name: N | undefined) => document.getElementById(`${id}-${name}`) as HTMLInputElement | null;
  const check = (name: N): FieldError | null => rules[name](values.value[name], values.value);
  const error = (name: N): string | null => {
    const failure = refused.value.find((each) => fieldOf(each) === name);
    if (failure) return explain(failure);
    const flaw = checked.value.includes(name) ? check(name) : null;
    return flaw && t(flaw.key, flaw.values);
  };
  return {
    values: () => values.peek(),
    error,
    bind: (name, noted) => {
      const wrong = error(name) !== null;
      return {
        id: `${id}-${name}`,
        name,
        class: 'field',
        dir: 'auto',
        value: values.value[name],
        'aria-invalid': wrong ? 'true' : undefined,
        'aria-describedby': wrong || noted ? `${id}-${name}-note` : undefined,
        onInput: ({ currentTarget }) => {
          values.value = { ...values.peek(), [name]: currentTarget.value };
          if (refused.peek().length) refused.value = refused.peek().filter((each) => fieldOf(each) !== name);
        },
        onBlur: ({ currentTarget }) => {
          if (document.activeElement === currentTarget || checked.peek().includes(name)) return; // the window lost the focus, not the field
          whenReleased(() => (checked.value = [...checked.peek(), name]));
        },
      };
    },
    ready: () => {
      refused.value = [];
      checked.value = names;
      // Some password managers fill in a value without an event.
      values.value = Object.fromEntries(names.map((name) => [name, inputOf(name)?.value ?? values.peek()[name]])) as Record<N, string>;
      const wrong = names.find(check);
      inputOf(wrong)?.focus();
      return !wrong;
    },
    refuse: (failures) => {
      refused.value = failures.filter(fieldOf);
      inputOf(names.find((name) => failures.some((each) => fieldOf(each) === name)))?.focus();
      return failures.filter((each) => !fieldOf(each));
    },
    forget: () => {
      checked.value = [];
      refused.value = [];
    },
  };
}

interface FieldProps<N extends string> {
  form: Fields<N>;
  name: N;
  label: string;
  hint?: string | undefined;
  class?: string;
  children: (bound: InputProps) => ComponentChildren;
}

/** A field with its label, and below it the error, else the hint. */
export function Field<N extends string>({ form, name, label, hint, class: layout = '', children }: FieldProps<N>) {
  const bound = form.bind(name, hint !== undefined);
  const error = form.error(name);
  return (
    <div class={`grid content-start gap-1.5 ${layout}`}>
      <label for={bound.id} class="font-medium">
        {label}
      </label>
      {children(bound)}
      <p id={`${bound.id}-note`} aria-live="polite" class={`text-sm empty:hidden ${error ? 'font-medium text-danger' : 'text-soft'}`}>
        {error ?? hint}
      </p>
    </div>
  );
}
