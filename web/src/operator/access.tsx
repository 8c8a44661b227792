/** The access rules of a sale in its form, and the upload of a list of members. */
import { useSignal } from '@preact/signals';
import { request } from '../api/client';
import { ChangeAccessMembers } from '../documents/access';
import { bounded } from '../forms/bounded';
import { count } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { Icon } from '../ui/icons';
import { Select } from '../ui/select';
import type { AdminSale } from './acts';
import { FileInput } from './file';
import { Field, Form, type Values } from './form';
import { ot } from './texts';

/** Whom a rule fits, in the order of the choice. */
const kinds = ['ALL', 'VERIFIED_CONTACT', 'LIST', 'CODE', 'CLAIM'] as const;
type Kind = (typeof kinds)[number];

/** A line of the form: one rule. */
interface Row {
  key: number;
  rule: Partial<AdminSale['access'][number]>;
}

const MAX_RULES = 10;

/** Minutes of the form as seconds of the API. */
const seconds = (minutes: string | undefined): number => Math.round(Number(minutes || 0) * 60);

/** The access rules in the values of a form, in their order. */
export const accessOf = (of: Values) =>
  Object.keys(of)
    .filter((name) => name.startsWith('kind-'))
    .map((name) => {
      const key = name.slice('kind-'.length);
      const text = (field: string): string | null => of[`${field}-${key}`] || null;
      return {
        kind: of[name] as Kind,
        name: text('name'),
        source: text('source'),
        afterSeconds: seconds(of[`afterSeconds-${key}`]),
        keepUnits: Number(of[`keepUnits-${key}`] || 0),
        keepSeconds: seconds(of[`keepSeconds-${key}`]),
      };
    });

/** The rules of a sale as fields. Without any, everyone may buy from the opening on. */
export function AccessFields({ rules }: { rules: AdminSale['access'] }) {
  const rows = useSignal<Row[]>(rules.map((rule, key) => ({ key, rule })));
  const add = (): void => {
    const key = 1 + Math.max(-1, ...rows.value.map((row) => row.key));
    rows.value = [...rows.value, { key, rule: { kind: rows.value.length ? 'ALL' : 'LIST' } }];
  };
  return (
    <fieldset class="grid gap-3 sm:col-span-2">
      <legend class="font-semibold">{ot('op.access')}</legend>
      <p class="text-sm text-soft">{rows.value.length ? ot('op.access.help') : ot('op.accessAll')}</p>
      {rows.value.map(({ key, rule }, i) => (
        <RuleFields key={key} at={key} n={i + 1} rule={rule} remove={() => (rows.value = rows.value.filter((row) => row.key !== key))} />
      ))}
      {rows.value.length < MAX_RULES && (
        <button type="button" class="btn justify-self-start" onClick={add}>
          {ot('op.access.add')}
        </button>
      )}
    </fieldset>
  );
}

function RuleFields({ at, n, rule, remove }: { at: number; n: number; rule: Row['rule']; remove: () => void }) {
  const kind = useSignal<string>(rule.kind ?? 'ALL');
  const named = kind.value !== 'ALL' && kind.value !== 'VERIFIED_CONTACT';
  const minutes = (name: string, value: number | undefined) => (
    <input name={`${name}-${at}`} class="field font-normal" type="number" min="0" step="any" defaultValue={value ? value / 60 : undefined} disabled={name === 'keepSeconds' && kind.value === 'ALL'} />
  );
  return (
    <fieldset class="grid items-end gap-3 rounded-xl border border-line p-4 sm:grid-cols-3">
      <legend class="sr-only">{ot('op.access.rule', { n })}</legend>
      <Field label={ot('op.access.kind')}>
        <Select name={`kind-${at}`} value={kind.value} change={(value) => (kind.value = value)} choices={kinds.map((value) => ({ value, label: ot(`op.access.${value}`) }))} />
      </Field>
      <Field label={ot('op.access.name')}>
        <input name={`name-${at}`} class="field font-normal" ref={bounded({ most: 40 })} required={named} disabled={!named} defaultValue={rule.name ?? ''} />
      </Field>
      <Field label={ot(kind.value === 'CLAIM' || kind.value === 'CODE' ? `op.access.source.${kind.value}` : 'op.access.source.LIST')}>
        <input name={`source-${at}`} class="field font-normal" ref={bounded({ most: 165 })} required={named} disabled={!named} defaultValue={rule.source ?? ''} />
      </Field>
      <Field label={ot('op.access.after')}>{minutes('afterSeconds', rule.afterSeconds)}</Field>
      <Field label={ot('op.access.keep')}>
        <input name={`keepUnits-${at}`} class="field font-normal" type="number" min="0" max="1000000" disabled={kind.value === 'ALL'} defaultValue={rule.keepUnits || undefined} />
      </Field>
      <Field label={ot('op.access.until')}>{minutes('keepSeconds', rule.keepSeconds)}</Field>
      <button type="button" class="btn justify-self-start sm:col-span-3" aria-label={ot('op.named', { name: ot('op.access.remove'), text: ot('op.access.rule', { n }) })} onClick={remove}>
        <Icon name="close" /> {ot('op.access.remove')}
      </button>
    </fieldset>
  );
}

/** Rows of one call. */
const CALL_ROWS = 1000;

interface Problem {
  line: number;
  reason: 'MALFORMED' | 'NO_ACCOUNT_YET' | 'UNKNOWN_ACCOUNT';
}

/** Uploads a CSV file as the members of a list, and names the lines without an account. */
export function UploadMembers({ list, close }: { list: string; close: () => void }) {
  const outcome = useSignal<{ rows: number; members: number; problems: Problem[] } | null>(null);
  const send = async (of: Values, form: HTMLFormElement) => {
    const file = (form.elements.namedItem('file') as HTMLInputElement).files![0]!;
    const rows = (await file.text()).split(/\r?\n/);
    const found = { rows: 0, members: 0, problems: [] as Problem[] };
    for (let first = 0; first < rows.length; first += CALL_ROWS) {
      const mode = of['mode'] === 'REPLACE' && first > 0 ? ('ADD' as const) : (of['mode'] as 'ADD' | 'REMOVE' | 'REPLACE');
      const input = { list, mode, by: of['by'] as 'ACCOUNT' | 'CONTACT' | 'EXTERNAL_ID', rows: rows.slice(first, first + CALL_ROWS), firstLine: first + 1 };
      const { changeAccessMembers: done } = await request(ChangeAccessMembers, { input });
      if (!done || done.userErrors.length) return done?.userErrors;
      found.rows += done.rows;
      found.members = done.list?.members ?? 0;
      found.problems.push(...done.problems);
    }
    outcome.value = found;
    return null;
  };
  const done = outcome.value;
  return (
    <Dialog title={ot('op.named', { name: ot('op.members'), text: list })} close={close}>
      {done ? (
        <div class="grid gap-3" role="status">
          <p>{ot('op.members.done', { rows: count(done.rows), members: count(done.members) })}</p>
          {done.problems.length > 0 && (
            <ul class="max-h-60 overflow-auto text-sm" tabIndex={0} aria-label={ot('op.members.problems')}>
              {done.problems.map(({ line, reason }) => (
                <li key={line}>{ot('op.named', { name: ot('op.members.line', { n: count(line) }), text: ot(`op.members.${reason}`) })}</li>
              ))}
            </ul>
          )}
        </div>
      ) : (
        <Form label={ot('op.members.upload')} send={send} done={() => {}}>
          <Field label={ot('op.members.file')}>
            <FileInput name="file" accept=".csv,.txt,text/csv,text/plain" required />
          </Field>
          <Field label={ot('op.members.by')}>
            <Select name="by" value="CONTACT" choices={(['CONTACT', 'EXTERNAL_ID', 'ACCOUNT'] as const).map((value) => ({ value, label: ot(`op.members.by.${value}`) }))} />
          </Field>
          <Field label={ot('op.members.mode')}>
            <Select name="mode" value="ADD" choices={(['ADD', 'REPLACE', 'REMOVE'] as const).map((value) => ({ value, label: ot(`op.members.mode.${value}`) }))} />
          </Field>
        </Form>
      )}
    </Dialog>
  );
}
