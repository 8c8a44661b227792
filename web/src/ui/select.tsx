import { useSignal } from '@preact/signals';

/** One choice of a select. */
export interface Choice {
  value: string;
  label: string;
}

interface Props {
  /** The stored value; empty = none yet. It is always among the choices. */
  value: string;
  choices: readonly Choice[];
  /** What the stored value is called when it is not among the choices; the value itself unless given. */
  kept?: string | undefined;
  /** The first line, for no value. */
  none?: string;
  /** Called with the new value. */
  change?: (value: string) => void;
  /** The name of the field in its form. */
  name?: string;
  required?: boolean;
  label?: string;
  class?: string;
}

/**
 * The only select of the shop. A browser shows, and sends, the first line of a
 * select whose value is not among its lines, so that a stored value that the list
 * does not have would be replaced silently.
 */
export function Select({ value: stored, choices, kept, none, change, name, required, label, class: layout = '' }: Props) {
  const own = useSignal(stored);
  const value = change ? stored : own.value; // with `change` the value is kept elsewhere
  const missing = value !== '' && !choices.some((each) => each.value === value);
  return (
    <select
      class={`field font-normal ${layout}`}
      value={value}
      name={name}
      required={required}
      aria-label={label}
      onChange={({ currentTarget }) => {
        own.value = currentTarget.value;
        change?.(currentTarget.value);
      }}
    >
      {(none !== undefined || (!value && required)) && <option value="">{none ?? '–'}</option>}
      {missing && <option value={value}>{value === stored && kept ? kept : value}</option>}
      {choices.map((each) => (
        <option key={each.value} value={each.value} dir="auto">
          {each.label}
        </option>
      ))}
    </select>
  );
}

/** The choices from 1 to a number. */
export const upTo = (most: number, label: (n: number) => string): Choice[] =>
  Array.from({ length: most }, (_, i) => ({ value: String(i + 1), label: label(i + 1) }));
