/** Fields of forms about a sale: the name of its template, its accent colour, its times. */
import { useSignal } from '@preact/signals';
import { now } from '../api/clock';
import { bounded } from '../forms/bounded';
import { localInput, readLocal } from './acts';
import { Field } from './form';
import { ot } from './texts';
import { When } from './when';

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

/** Refuses times that have passed, and an end that is not after the opening. */
function future(field: HTMLInputElement): string {
  const [starts, ends] = ['starts', 'ends'].map((name) => field.form?.elements.namedItem(name) as HTMLInputElement | null);
  if (field === starts) ends?.dispatchEvent(new Event('input', { bubbles: true }));
  if (readLocal(field.value) <= now()) return ot('op.passed');
  return field === ends && starts && readLocal(field.value) <= readLocal(starts.value) ? ot('op.endsBefore') : '';
}

/** The opening and the end of a sale, or the end alone. */
export function Times({ sale, endOnly }: { sale: { startsAt: string; endsAt: string }; endOnly?: boolean }) {
  return (
    <>
      {!endOnly && <When kind="time" label={ot('op.starts')} name="starts" value={localInput(Date.parse(sale.startsAt))} required check={future} />}
      <When kind="time" label={ot('op.ends')} name="ends" value={localInput(Date.parse(sale.endsAt))} required check={future} />
      <p class="col-span-full text-sm text-soft">{ot('op.local', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone })}</p>
    </>
  );
}
