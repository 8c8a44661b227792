/** The codes of a sale: its batches, their files, what is revoked. */
import { useSignal } from '@preact/signals';
import { request } from '../api/client';
import { CreateAccessCodes, RevokeAccessCodes } from '../documents/codes';
import { count } from '../i18n/text';
import { DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { Select } from '../ui/select';
import { instant, type AdminSale } from './acts';
import { Field, Form, Note } from './form';
import { saveFile } from './report';
import { ot } from './texts';
import { When } from './when';

type Batch = NonNullable<AdminSale['accessCodes']>[number];

/** The sources of the rules of a sale that codes fit. */
const sourcesOf = (sale: AdminSale): string[] => sale.access.flatMap(({ kind, source }) => (kind === 'CODE' && source ? [source] : []));

/** Statuses in which there are no more codes. */
const OVER = ['ENDED', 'CANCELLED'];

/** The batches of a sale whose rules let in by codes. */
export function Codes({ sale, reload }: { sale: AdminSale; reload: () => void }) {
  const dialog = useSignal<Batch | 'new' | null>(null);
  const why = useSignal<string | null>(null);
  const sources = sourcesOf(sale);
  const batches = sale.accessCodes ?? [];
  if (!sources.length && !batches.length) return null;
  const file = async ({ number }: Batch): Promise<void> => {
    why.value = await saveFile(`/exports/codes.csv?sale=${sale.id}&batch=${number}`, `${sale.slug}-codes-${number}.csv`);
  };
  const shut = (): void => void (dialog.value = null);
  const done = (): void => {
    shut();
    reload();
  };
  const open = dialog.value;
  return (
    <section class="card grid gap-3 p-5" data-codes>
      <h2 class="head">{ot('op.codes')}</h2>
      <p class="text-sm text-soft">{ot('op.codes.help', { address: `${location.origin}/s/${sale.slug}?code=…` })}</p>
      <ul class="grid gap-3">
        {batches.map((batch) => (
          <li key={batch.number} class="flex flex-wrap items-baseline gap-x-4 gap-y-1">
            <span class="min-w-0 grow">
              {ot('op.codes.batch', { n: batch.number })} <bdi class="text-soft">{batch.source}</bdi> · {ot('op.codes.of', { codes: count(batch.codes), uses: count(batch.uses) })}
              {batch.expiresAt && <span class="block text-sm text-soft">{ot('op.codes.until')} <DateTime at={batch.expiresAt} zone /></span>}
              {batch.revokedCodes > 0 && <span class="block text-sm text-soft">{ot('op.codes.revokedCodes', { n: count(batch.revokedCodes) })}</span>}
              {!batch.valid && <span class="block text-sm text-warn">{ot('op.codes.invalid')}</span>}
            </span>
            {batch.revoked ? (
              <span class="chip text-soft">{ot('op.codes.revoked')}</span>
            ) : (
              <span class="flex flex-wrap gap-4">
                {batch.valid && (
                  <button class="link" onClick={() => void file(batch)}>
                    {ot('op.codes.file')} <span class="sr-only">{ot('op.codes.batch', { n: batch.number })}</span>
                  </button>
                )}
                <button class="link" onClick={() => (dialog.value = batch)}>
                  {ot('op.codes.revoke')} <span class="sr-only">{ot('op.codes.batch', { n: batch.number })}</span>
                </button>
              </span>
            )}
          </li>
        ))}
      </ul>
      {why.value && <p role="alert">{why.value}</p>}
      {!OVER.includes(sale.status) && sources.length > 0 && (
        <button class="btn justify-self-start" onClick={() => (dialog.value = 'new')}>
          {ot('op.codes.create')}
        </button>
      )}
      {open === 'new' && <Create sale={sale} sources={sources} close={shut} done={done} />}
      {open && open !== 'new' && <Revoke sale={sale} batch={open} close={shut} done={done} />}
    </section>
  );
}

interface DialogProps {
  sale: AdminSale;
  close: () => void;
  done: () => void;
}

function Create({ sale, sources, close, done }: DialogProps & { sources: string[] }) {
  return (
    <Dialog title={ot('op.codes.create')} close={close}>
      <Form
        label={ot('op.codes.create')}
        done={done}
        send={async (of) => {
          const input = {
            saleId: sale.id,
            source: of['source']!,
            codes: Number(of['codes']),
            uses: Number(of['uses']),
            expiresAt: of['expiresAt'] ? instant(of['expiresAt']) : null,
            note: of['note'] || null,
          };
          return (await request(CreateAccessCodes, { input })).createAccessCodes?.userErrors;
        }}
      >
        <Field label={ot('op.codes.source')}>
          <Select name="source" value={sources[0]!} choices={sources.map((value) => ({ value, label: value }))} />
        </Field>
        <Field label={ot('op.codes.count')}>
          <input name="codes" class="field font-normal" type="number" min="1" max="100000" required defaultValue="1" />
        </Field>
        <Field label={ot('op.codes.uses')}>
          <input name="uses" class="field font-normal" type="number" min="1" max="1000000" required defaultValue="1" />
        </Field>
        <When kind="time" label={ot('op.codes.expires')} name="expiresAt" />
        <Note label={ot('op.note')} />
      </Form>
    </Dialog>
  );
}

function Revoke({ sale, batch, close, done }: DialogProps & { batch: Batch }) {
  return (
    <Dialog title={ot('op.named', { name: ot('op.codes.revoke'), text: ot('op.codes.batch', { n: batch.number }) })} close={close}>
      <Form
        label={ot('op.codes.revoke')}
        done={done}
        send={async (of) => {
          const input = { saleId: sale.id, batch: batch.number, number: of['number'] ? Number(of['number']) : null, note: of['note'] || null };
          return (await request(RevokeAccessCodes, { input })).revokeAccessCodes?.userErrors;
        }}
      >
        <p>{ot('op.codes.sure')}</p>
        <Field label={ot('op.codes.number')}>
          <input name="number" class="field font-normal" type="number" min="1" max={batch.codes} />
        </Field>
        <Note label={ot('op.note')} />
      </Form>
    </Dialog>
  );
}
