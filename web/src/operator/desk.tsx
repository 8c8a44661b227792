/** One sale: its steps, its figures, its log. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { toFault } from '../api/fault';
import { useLoad } from '../api/load';
import { request } from '../api/request';
import { person } from '../api/session';
import type { ResultOf } from '../api/tada';
import { DeskSale as DeskSaleDoc, type LogParts } from '../documents/operator';
import { apologise, count, explain, money, t } from '../i18n/text';
import { Broken, Loading, Stale, Title, When } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { actsOf, needs, take, type Act, type DeskSale } from './acts';
import { Cockpit } from './cockpit';
import { StatusChip } from './sales';
import { ot } from './texts';

/** States in which there are figures. */
const SOLD = ['PREHEATED', 'LIVE', 'PAUSED', 'ENDED'];

/** The page. */
export function Desk({ id }: { id: string }) {
  const { page, reload } = useLoad(`desk ${id}`, async (signal) => (await request(DeskSaleDoc, { id }, signal)).sale);
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return <Broken fault={page.value.fault} again={reload} />;
    case 'missing':
      return <Title>{t('sale.missing')}</Title>;
    case 'ready': {
      const { data: sale, fault } = page.value;
      return (
        <div class="grid gap-6">
          <Stale fault={fault} again={reload} />
          <div class="flex flex-wrap items-center justify-between gap-3">
            <div class="flex flex-wrap items-center gap-3">
              <Title>{sale.title}</Title>
              <StatusChip status={sale.status} />
            </div>
            <Link href={`/s/${sale.slug}`} class="link">
              {ot('op.shop')}
            </Link>
          </div>
          <Acts sale={sale} reload={reload} />
          {SOLD.includes(sale.status) && <Cockpit id={sale.id} live={sale.status !== 'ENDED'} />}
          <div class="grid items-start gap-6 lg:grid-cols-2">
            <Items sale={sale} />
            <Log entries={sale.timeline} />
          </div>
        </div>
      );
    }
  }
}

/** The steps that can be taken now; each asks once more. */
function Acts({ sale, reload }: { sale: DeskSale; reload: () => void }) {
  const asking = useSignal<Act | null>(null);
  const sending = useSignal(false);
  const why = useSignal<string | null>(null);
  const note = useRef<HTMLTextAreaElement>(null);
  const acts = person.value ? actsOf(sale.status, person.value) : [];
  if (!acts.length) return null;

  const run = async (act: Act): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      const told = await take(act, sale.id, note.current?.value.trim() ?? '');
      const failure = told?.userErrors[0];
      why.value = failure ? explain(failure) : null;
      if (!failure) {
        asking.value = null;
        toast(ot('op.saved'));
        reload();
      }
    } catch (thrown) {
      why.value = apologise(toFault(thrown));
    } finally {
      sending.value = false;
    }
  };
  const act = asking.value;
  return (
    <div class="flex flex-wrap gap-3">
      {acts.map((each) => (
        <button
          key={each}
          class={`btn ${['end', 'cancel', 'reject'].includes(each) ? '' : 'btn-main'}`}
          onClick={() => {
            why.value = null;
            asking.value = each;
          }}
        >
          {ot(`op.act.${each}`)}
        </button>
      ))}
      {act && (
        <Dialog title={ot(`op.act.${act}`)} close={() => (asking.value = null)}>
          <form
            class="grid gap-3"
            onSubmit={(event) => {
              event.preventDefault();
              void run(act);
            }}
          >
            <p>{ot(`op.sure.${act}`)}</p>
            {needs[act].note !== 'none' && (
              <label class="grid gap-1.5 font-medium">
                {ot(needs[act].note === 'required' ? 'op.reason' : 'op.note')}
                <textarea ref={note} class="field font-normal" rows={2} maxLength={200} required={needs[act].note === 'required'} />
              </label>
            )}
            {why.value && (
              <p class="font-medium text-warn" role="alert">
                {why.value}
              </p>
            )}
            <div class="flex flex-wrap gap-3">
              <button class="btn btn-main" aria-disabled={sending.value}>
                {sending.value && <span class="spin" />}
                {ot(`op.act.${act}`)}
              </button>
              <button type="button" class="btn" onClick={() => (asking.value = null)}>
                {ot('op.back')}
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </div>
  );
}

function Items({ sale }: { sale: DeskSale }) {
  return (
    <section class="card p-5">
      <h2 class="head mb-3">{ot('op.items')}</h2>
      <p class="mb-3 text-sm text-soft">
        <When at={sale.startsAt} zone /> – <When at={sale.endsAt} zone />
      </p>
      <table class="w-full text-left">
        <thead class="text-sm text-soft">
          <tr>
            <th class="py-1 font-medium">{ot('op.name')}</th>
            <th class="py-1 text-right font-medium">{ot('op.price')}</th>
            <th class="py-1 text-right font-medium">{ot('op.left')}</th>
          </tr>
        </thead>
        <tbody>
          {sale.items.map((item) => (
            <tr key={item.id} class="border-t border-line tabular-nums">
              <td class="py-2">{item.goods.name}</td>
              <td class="py-2 text-right">{money(item.price)}</td>
              <td class="py-2 pl-3 text-right whitespace-nowrap">
                {item.stock.remaining === null ? t(`stock.${item.stock.level}`) : count(item.stock.remaining)}
                {item.stock.total !== null && ` / ${count(item.stock.total)}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Log({ entries }: { entries: ResultOf<typeof LogParts>[] }) {
  return (
    <section class="card p-5">
      <h2 class="head mb-3">{ot('op.log')}</h2>
      <ol class="grid gap-3 border-l-2 border-line pl-4">
        {entries.map((entry) => (
          <li key={`${entry.at}${entry.status}`}>
            <p class="font-medium">{ot(`op.status.${entry.status}`)}</p>
            <p class="text-sm text-soft">
              <When at={entry.at} /> · {entry.actor?.displayName ?? ot('op.byClock')}
              {entry.note && ` · ${entry.note}`}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
