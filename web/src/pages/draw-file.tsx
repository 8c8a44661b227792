/** The check of the published file of a draw sale. */
import { DRAW_STEPS, verifyDrawRecord, type DrawRecord, type DrawRecordCheck, type OwnEntry } from '@seckill/client/drawrecord';
import { request } from '../api/client';
import { useLoad } from '../api/load';
import { DrawNonce } from '../documents/draw';
import { count, loadTexts } from '../i18n/text';
import { SuccessMessage, Unready } from '../ui/bits';
import { Icon } from '../ui/icons';
import { dt, texts } from './draw-texts';

/** Loads the texts of this part. */
export const prepare = (): Promise<void> => loadTexts((of) => Promise.resolve(texts[of]));

/** Fetches a file and repeats its draw. */
async function check(file: string, own: OwnEntry | null, signal: AbortSignal): Promise<{ record: DrawRecord; found: DrawRecordCheck }> {
  const response = await fetch(file, { signal });
  if (!response.ok) throw new Error(`${file} answered ${response.status}`);
  const record = (await response.json()) as DrawRecord;
  return { record, found: await verifyDrawRecord(record, own ?? undefined) };
}

/** What this browser finds in a file, with the rank of the own entry. */
export function DrawFile({ file, own }: { file: string; own: OwnEntry | null }) {
  const { page, reload } = useLoad(`draw file ${file}`, (signal) => check(file, own, signal));
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} />;
  const { record, found } = page.value.data;
  const failed = DRAW_STEPS.find((step) => !found.steps[step]);
  // A value that is not a beacon's proves nothing: who gave it may have chosen it.
  const of = record.source === 'drand-quicknet' ? '' : 'Value';
  return (
    <div class="mt-3 grid gap-3 text-sm">
      <p class="text-soft">{dt('file.how')}</p>
      <div role={found.genuine ? 'status' : 'alert'}>
        {found.genuine ? <SuccessMessage>{dt(`file.right${of}`)}</SuccessMessage> : <p class="font-medium text-danger">{dt('file.wrong')}</p>}
      </div>
      <ul class="grid gap-2">
        {DRAW_STEPS.slice(0, failed ? DRAW_STEPS.indexOf(failed) + 1 : undefined).map((step) => (
          <li key={step} class={`flex gap-2 ${found.steps[step] ? '' : 'text-danger'}`} data-step={step} data-right={found.steps[step]}>
            <span class={`shrink-0 ${found.steps[step] ? 'text-good' : ''}`}>
              <Icon name={found.steps[step] ? 'check' : 'close'} />
            </span>
            {dt(found.steps[step] ? (step === 'signature' && record.source === 'local' ? 'file.signatureLocal' : step === 'signature' || step === 'round' ? `file.${step}${of}` : `file.${step}`) : `file.${step}Not`, {
              n: count(record.count),
              round: count(record.round),
              value: record.value,
              source: record.valueSource || record.source,
            })}
          </li>
        ))}
      </ul>
      {own && found.steps.order && (
        <p class="font-medium" data-rank={found.rank ?? 0}>
          {found.rank ? dt('file.rank', { n: count(found.rank), of: count(record.count) }) : dt('file.rankNot')}
        </p>
      )}
      <a class="link justify-self-start" href={file} download>
        {dt('file.download')}
      </a>
    </div>
  );
}

/** The user's entry, with the nonce that this browser sent with it. */
async function ownEntry(entryId: string, signal: AbortSignal): Promise<OwnEntry | null> {
  const { node } = await request(DrawNonce, { id: entryId }, signal);
  return node?.__typename === 'WaitlistEntry' && node.nonce ? { entryId, nonce: node.nonce } : null;
}

/** The check of the file of a drawn item, with the user's entry if there is one. */
export function ItemDraw({ file, entryId }: { file: string; entryId: string | null }) {
  const { page, reload } = useLoad(`draw entry ${entryId}`, async (signal) => ({ own: entryId && (await ownEntry(entryId, signal)) }));
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} />;
  return <DrawFile file={file} own={page.value.data.own || null} />;
}
