/** A choice from a list of the server that may be longer than a page. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useLoad } from '../api/load';
import { FaultMessage } from '../ui/bits';
import { Select, type Choice } from '../ui/select';
import { Field } from './form';
import { ot } from './texts';

/** A page of choices. */
export interface Found {
  choices: Choice[];
  /** Whether the list has more than these. */
  more: boolean;
}

/** Time after the last letter before the server is asked, in ms. */
const PAUSE_MS = 250;

interface Props {
  label: string;
  /** The label of the search field, which is shown only where the list has more than a page. */
  findLabel: string;
  /** Names the list; equal names share what was found. */
  list: string;
  /** The page without a search. */
  first: Found;
  find: (text: string, signal: AbortSignal) => Promise<Found>;
  value: string;
  kept?: string | undefined;
  none?: string;
  change?: (value: string) => void;
  name?: string;
  required?: boolean;
}

/** The select, with a search where the list is longer than its first page. */
export function Pick({ label, findLabel, list, first, find, value, ...rest }: Props) {
  const text = useSignal('');
  const own = useSignal(value);
  const chosen = rest.change ? value : own.value;
  const pausing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const { page, reload } = useLoad<Found>(`pick ${list} ${text.value}`, async (signal) => (text.value ? find(text.value, signal) : first));
  const names = useRef(new Map<string, string>()); // of everything that was found: a chosen line stays when the next search does not find it
  const found = text.value ? (page.value.state === 'ready' ? page.value.data : { choices: [], more: false }) : first;
  for (const { value: each, label: name } of found.choices) names.current.set(each, name);
  useEffect(() => () => clearTimeout(pausing.current), []);
  const search = (typed: string, after = PAUSE_MS): void => {
    clearTimeout(pausing.current);
    pausing.current = setTimeout(() => (text.value = typed.trim()), after);
  };
  return (
    <div class="grid content-start gap-3">
      {first.more && (
        <Field label={findLabel}>
          <input
            type="search"
            class="field font-normal"
            onInput={(event) => search(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              event.preventDefault(); // does not send the form that the field is in
              search(event.currentTarget.value, 0);
            }}
          />
        </Field>
      )}
      {text.value && page.value.state === 'failed' && <FaultMessage fault={page.value.fault} again={reload} />}
      <Field label={label}>
        <Select
          {...rest}
          value={chosen}
          kept={names.current.get(chosen) ?? rest.kept}
          choices={found.choices}
          change={(next) => {
            own.value = next;
            rest.change?.(next);
          }}
        />
      </Field>
      {first.more && (
        <p class="text-sm text-soft" role="status">
          {text.value && page.value.state === 'ready' && !found.choices.length ? ot('op.pick.nothing') : found.more ? ot('op.pick.more') : ''}
        </p>
      )}
    </div>
  );
}
