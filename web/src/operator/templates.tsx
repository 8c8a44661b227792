/** Saved sales, from which drafts are created. */
import { useSignal } from '@preact/signals';
import { useLocation } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { CreateFromTemplate, DeleteTemplate, Templates as TemplatesDoc } from '../documents/templates';
import { count, span } from '../i18n/text';
import { FaultMessage, DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { instant } from './acts';
import { Form } from './form';
import { Times } from './sale-fields';
import { ot } from './texts';

type Template = NonNullable<ResultOf<typeof TemplatesDoc>['saleTemplates']>[number];

/** The list; nothing while there is none. */
export function Templates() {
  const { page, reload } = useLoad('templates', async (signal) => (await request(TemplatesDoc, {}, signal)).saleTemplates);
  if (page.value.state === 'failed') return <FaultMessage fault={page.value.fault} again={reload} />;
  if (page.value.state !== 'ready' || !page.value.data.length) return null;
  return (
    <details class="card mb-4 p-4" data-templates>
      <summary class="cursor-pointer font-medium">
        {ot('op.templates')} <span class="font-normal text-soft tabular-nums">{count(page.value.data.length)}</span>
      </summary>
      <ul class="mt-3 grid grid-cols-1 gap-2">
        {page.value.data.map((template) => (
          <Row key={template.id} template={template} reload={reload} />
        ))}
      </ul>
    </details>
  );
}

const HOUR_MS = 3_600_000;

function Row({ template, reload }: { template: Template; reload: () => void }) {
  const asking = useSignal<'use' | 'delete' | null>(null);
  const [, go] = useLocation();
  const close = (): void => void (asking.value = null);
  let made: string | undefined;
  return (
    <li class="note flex flex-wrap items-center justify-between gap-3">
      <div class="min-w-0">
        <p class="font-medium break-words"><bdi>{template.name}</bdi></p>
        <p class="text-sm text-soft">
          {ot('op.templateOf', { items: count(template.itemCount), time: span(template.lastsSeconds) })} · <DateTime at={template.savedAt} /> ·{' '}
          <bdi>{template.savedBy?.displayName}</bdi>
        </p>
      </div>
      <div class="flex flex-wrap gap-3">
        <button class="btn btn-main" onClick={() => (asking.value = 'use')}>
          {ot('op.template.use')}
        </button>
        <button class="btn" onClick={() => (asking.value = 'delete')}>
          {ot('op.template.delete')}
        </button>
      </div>
      {asking.value === 'use' && (
        <Dialog title={template.name} close={close}>
          <Form
            label={ot('op.template.use')}
            send={async ({ starts, ends }) => {
              const { act } = await request(CreateFromTemplate, { input: { templateId: template.id, startsAt: instant(starts), endsAt: instant(ends) } });
              made = act?.sale?.id;
              return act?.userErrors;
            }}
            done={() => {
              close();
              if (made) go(`/operate/sales/${made}`);
            }}
          >
            <Times sale={usualTimes(template)} />
          </Form>
        </Dialog>
      )}
      {asking.value === 'delete' && (
        <Dialog title={template.name} close={close}>
          <Form
            label={ot('op.template.delete')}
            send={async () => (await request(DeleteTemplate, { input: { templateId: template.id } })).act?.userErrors}
            done={() => {
              close();
              toast(ot('op.saved'));
              reload();
            }}
          >
            <p>{ot('op.template.deleteSure')}</p>
          </Form>
        </Dialog>
      )}
    </li>
  );
}

/** From the next full hour but one, for as long as the saved sale lasted. */
function usualTimes({ lastsSeconds }: Template): { startsAt: string; endsAt: string } {
  const starts = (Math.ceil(Date.now() / HOUR_MS) + 1) * HOUR_MS;
  return { startsAt: new Date(starts).toISOString(), endsAt: new Date(starts + lastsSeconds * 1000).toISOString() };
}
