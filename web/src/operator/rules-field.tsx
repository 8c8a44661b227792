/** The field of a sale's rules: Markdown, with buttons for what buyers' pages show of it, and a preview. */
import { useSignal } from '@preact/signals';
import { useId, useRef } from 'preact/hooks';
import { bounded } from '../forms/bounded';
import { lazy } from '../ui/lazy';
import { Field } from './form';
import { ot } from './texts';

const Markdown = lazy(() => import('../pages/markdown').then((module) => module.Markdown));

/** What surrounds a selection, or begins each of its lines. */
const marks = { bold: ['**', '**'], heading: ['## '], list: ['- '], steps: ['1. '], quote: ['> '] } as const;

/** Writes a mark around the selection, or at the begin of its lines; once more takes it away. */
export function mark(field: HTMLTextAreaElement, [before, after]: readonly [string, string?]): void {
  const { value, selectionStart, selectionEnd } = field;
  const from = after ? selectionStart : value.lastIndexOf('\n', selectionStart - 1) + 1;
  const chosen = value.slice(from, selectionEnd);
  const lines = chosen.split('\n');
  const marked = after ? chosen.startsWith(before) && chosen.endsWith(after) && chosen.length >= before.length + after.length : lines.every((line) => line.startsWith(before));
  const written = after
    ? marked ? chosen.slice(before.length, -after.length) : before + chosen + after
    : lines.map((line) => (marked ? line.slice(before.length) : before + line)).join('\n');
  field.focus();
  field.setRangeText(written, from, selectionEnd);
  const typing = from + before.length; // between the marks
  if (after && !chosen) field.setSelectionRange(typing, typing);
  else field.setSelectionRange(from, from + written.length);
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

export function RulesField({ text, rows }: { text: string | undefined; rows: number }) {
  const id = useId();
  const shown = useSignal<string | null>(null); // null: the text is edited
  const box = useRef<HTMLDivElement>(null);
  const field = (): HTMLTextAreaElement => box.current!.querySelector('textarea')!;
  return (
    <div ref={box} class="grid gap-2">
      <div class="order-first flex flex-wrap items-center gap-1" role="toolbar" aria-label={ot('op.marking')} aria-controls={id}>
        {(Object.keys(marks) as (keyof typeof marks)[]).map((name) => (
          <button key={name} type="button" class="chip min-h-10 px-3 hover:border-edge" disabled={shown.value !== null} onClick={() => mark(field(), marks[name])}>
            {ot(`op.mark.${name}`)}
          </button>
        ))}
        <button type="button" class="link ml-auto min-h-10 px-2" aria-pressed={shown.value !== null} onClick={() => (shown.value = shown.peek() === null ? field().value : null)}>
          {ot('op.mark.preview')}
        </button>
      </div>
      {shown.value !== null && (
        <div class="field min-h-24">
          <Markdown text={shown.value} />
        </div>
      )}
      <div hidden={shown.value !== null}>
        <Field label={ot('op.rules')}>
          <textarea id={id} name="rules" class="field font-normal" rows={rows} ref={bounded({ most: 10_000 })} defaultValue={text} />
        </Field>
      </div>
    </div>
  );
}
