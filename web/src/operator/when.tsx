/** Fields for a day or a time: the same in every browser and language, with 24 hours; the calendar of the browser fills them in. */
import { useRef } from 'preact/hooks';
import { Icon } from '../ui/icons';
import { readLocal } from './acts';
import { Field } from './form';
import { ot } from './texts';

/** How a value is written; the text is an example. */
const forms = {
  day: { pattern: '\\d{4}-\\d\\d-\\d\\d', example: '2026-11-28', native: 'date' },
  time: { pattern: '\\d{4}-\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d(:\\d\\d)?', example: '2026-11-28 19:30:00', native: 'datetime-local' },
} as const;

interface Props {
  label: string;
  kind: keyof typeof forms;
  name?: string;
  value?: string;
  required?: boolean;
  /** What else is wrong with a value that can be read; empty = nothing. */
  check?: (field: HTMLInputElement) => string;
  /** Called with a value that can be read, or with none. */
  change?: (value: string) => void;
}

export function When({ label, kind, name, value = '', required, check, change }: Props) {
  const text = useRef<HTMLInputElement>(null);
  const calendar = useRef<HTMLInputElement>(null);
  const { pattern, example, native } = forms[kind];
  const judge = (field: HTMLInputElement): void => {
    const unread = field.value !== '' && !field.validity.patternMismatch && Number.isNaN(readLocal(field.value));
    field.setCustomValidity(unread ? ot('op.form.value') : field.value && !field.validity.patternMismatch ? (check?.(field) ?? '') : '');
  };
  const open = (): void => {
    calendar.current!.value = text.current!.value.replace(' ', 'T');
    calendar.current!.showPicker();
  };
  const pick = (): void => {
    text.current!.value = calendar.current!.value.replace('T', ' ');
    for (const type of ['input', 'change']) text.current!.dispatchEvent(new Event(type, { bubbles: true }));
  };
  return (
    <Field label={label}>
      <span class="relative block">
        <input
          ref={(field) => {
            text.current = field;
            if (field) judge(field);
          }}
          name={name}
          class="field pr-10 pl-2 text-sm font-normal tabular-nums"
          aria-label={label}
          autocomplete="off"
          pattern={pattern}
          placeholder={example}
          required={required}
          defaultValue={value}
          data-when
          onInput={({ currentTarget }) => judge(currentTarget)}
          onChange={({ currentTarget }) => currentTarget.checkValidity() && change?.(currentTarget.value)}
        />
        <button type="button" class="icon-btn absolute top-0.5 right-0.5" aria-label={ot('op.calendar')} onClick={open}>
          <Icon name="calendar" />
        </button>
        <input ref={calendar} type={native} step={kind === 'time' ? 1 : undefined} class="pointer-events-none absolute right-0 bottom-0 size-px opacity-0" tabIndex={-1} aria-hidden="true" onInput={(event) => (event.stopPropagation(), pick())} onChange={(event) => event.stopPropagation()} />
      </span>
    </Field>
  );
}
