/** The admin page of one sale: its steps, its figures, its rules, its log. */
import { useSignal } from '@preact/signals';
import { Link, useLocation } from 'wouter-preact';
import { now } from '../api/clock';
import { useLoad } from '../api/load';
import { REFRESH_MS, useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import type { ResultOf } from '@seckill/client/operation';
import { AdminSale as AdminSaleDoc } from '../documents/operator';
import { bounded } from '../forms/bounded';
import { isolate, textOr, t } from '../i18n/text';
import type { Previewed } from '../pages/sale-preview';
import { DateTime, SaleNotFound, Stale, Title, Unready } from '../ui/bits';
import { Ticking } from '../ui/countdown';
import { Dialog } from '../ui/dialog';
import { Deferred } from '../ui/later';
import { actionsOf, localInput, needs, runAction, type SaleAction, type AdminSale } from './acts';
import { Approved } from './approved';
import { acted, type Asked } from './asked';
import { Codes } from './codes';
import { Dashboard } from './dashboard';
import { Field, Form, Note } from './form';
import { Interventions } from './interventions';
import { Items } from './items';
import { useAdminSale } from './live';
import { Happenings } from './feed';
import type { Names } from './log';
import { SaleTotals } from './money';
import type { Mark } from './plot';
import { Downloads } from './report';
import { Preview } from './preview';
import { Review } from './review';
import { PrivateChip, StatusChip } from './sale-row';
import { RulesField } from './rules-field';
import { Accent, TemplateName, Times } from './sale-fields';
import { Switches } from './switches';
import { ot } from './texts';

/** States in which there are figures. */
const WITH_FIGURES = ['PREHEATED', 'LIVE', 'PAUSED', 'ENDED'];
/** States in which everything about the sale is shown for its review. */
const REVIEWED = ['DRAFT', 'PENDING_APPROVAL', 'REJECTED', 'APPROVED'];
/** States of a sale that was approved. */
const APPROVED = ['APPROVED', 'SCHEDULED', 'PREHEATED', 'LIVE', 'PAUSED', 'ENDED'];
/** States whose changes are pushed: those of sales that buyers can see. */
const PUSHED = ['SCHEDULED', 'PREHEATED', 'LIVE', 'PAUSED', 'ENDED'];
/** Time between two reads of a sale in another state, in ms. */
const UNPUSHED_MS = 3_000;
/** States in which the sale can be edited. */
const EDITABLE = ['DRAFT', 'REJECTED'];

export function SalePage({ id }: { id: string }) {
  const { page, reload } = useLoad(`admin-sale ${id}`, async (signal) => (await request(AdminSaleDoc, { id }, signal)).sale);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<SaleNotFound again={reload} />} />;
  return (
    <>
      <Stale fault={page.value.fault} again={reload} />
      <Shown sale={page.value.data} reload={reload} />
    </>
  );
}

type SaleDetails = NonNullable<ResultOf<typeof AdminSaleDoc>['sale']>;

function Shown({ sale, reload }: { sale: SaleDetails; reload: () => Promise<void> }) {
  useAdminSale(sale, reload);
  useRefresh(reload, PUSHED.includes(sale.status) ? REFRESH_MS : UNPUSHED_MS);
  const acts = useSignal(0);
  const sold = WITH_FIGURES.includes(sale.status);
  return (
    <div class="grid grid-cols-1 gap-6">
      <div class="flex flex-wrap items-center justify-between gap-3">
        <div class="flex flex-wrap items-center gap-3">
          <Title><bdi>{sale.title}</bdi></Title>
          {!sold && <StatusChip status={sale.status} />}
          {sale.private && <PrivateChip />}
        </div>
        <span class="flex flex-wrap gap-4">
          {sold && (
            <Link href={`/operate/sales/${sale.id}/bought`} class="link">
              {ot('op.bought')}
            </Link>
          )}
          <Link href={`/s/${sale.slug}`} class="link">
            {ot('op.shop')}
          </Link>
        </span>
      </div>
      {sale.notice && <p class="note">{ot('op.notice', { text: sale.notice })}</p>}
      {REVIEWED.includes(sale.status) && (
        <>
          <Review sale={sale} />
          <Preview sale={described(sale)} hidden={sale.hideExactStock === true} />
        </>
      )}
      {sold ? (
        <div class="sticky top-0 z-10 -mx-4 flex flex-wrap items-center gap-3 border-b border-line bg-page px-4 py-2 sm:top-[calc(3rem+1px)] print:static" data-bar>
          <StatusChip status={sale.status} />
          <Clock sale={sale} />
          <Acts sale={sale} reload={() => (acts.value++, void reload())} />
        </div>
      ) : (
        <Acts sale={sale} reload={() => (acts.value++, void reload())} />
      )}
      {sold && <Dashboard id={sale.id} live={sale.status !== 'ENDED'} opening={sale.startsAt} names={namesOf(sale)} marks={marksOf(sale)} />}
      <Deferred>
        <Interventions key={acts.value} saleId={sale.id} moved={reload} />
        <div class="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
          <div class="grid grid-cols-1 gap-6">
            {APPROVED.includes(sale.status) && <Approved id={sale.id} names={namesOf(sale)} />}
            <Items sale={sale} acted={() => acts.value++} />
            <Codes sale={sale} reload={reload} />
            <Switches sale={sale} reload={reload} />
          </div>
          <div class="grid grid-cols-1 gap-6">
            {sold && <SaleTotals id={sale.id} />}
            {sold && <Downloads sale={sale} />}
            <Happenings id={sale.id} live={sold} entries={sale.timeline} names={namesOf(sale)} />
          </div>
        </div>
      </Deferred>
    </div>
  );
}

/** Casts the items: the document selects them twice, and TypeScript does not merge the two element types. */
const described = (sale: SaleDetails): Previewed => ({ ...sale, items: sale.items as readonly unknown[] as Previewed['items'] });

/** Names for the ids in the log. */
function namesOf({ items, timeline }: SaleDetails): Names {
  const people = timeline.flatMap(({ actor }) => (actor ? [[actor.id, actor.displayName]] : []));
  return Object.fromEntries([...people, ...items.flatMap(({ id, goods }) => [[id, goods.name], [goods.id, goods.name]])]);
}

/** Operators' actions and the opening, as marks of the chart. */
function marksOf({ timeline }: SaleDetails): Mark[] {
  return timeline
    .filter(({ actor, action }) => actor || action === 'OPEN')
    .map(({ at, action, actor }) => ({ at: Date.parse(at) / 1000, action, name: [textOr(`op.did.${action}`, action), isolate(actor?.displayName ?? '')].filter(Boolean).join(' · ') }))
    .reverse();
}

/** How long until the sale opens or ends. */
function Clock({ sale: { status, startsAt, endsAt } }: { sale: AdminSale }) {
  const opens = status === 'PREHEATED';
  if (status === 'ENDED') return null;
  const at = opens ? startsAt : endsAt;
  return (
    <span class="flex items-baseline gap-2 font-semibold">
      <span class="text-sm font-normal text-soft">{t(opens ? 'sale.opensIn' : 'sale.endsIn')}</span>
      <Ticking until={Date.parse(at)} />
      <span class="sr-only">
        <DateTime at={at} />
      </span>
    </span>
  );
}

/** Title, rules and accent of a sale. */
function Texts({ sale }: { sale: AdminSale }) {
  return (
    <>
      <Field label={ot('op.saleTitle')}>
        <input name="title" class="field font-normal" ref={bounded({ most: 120 })} required defaultValue={sale.title} />
      </Field>
      <RulesField text={sale.rules} rows={6} />
      <Accent color={sale.accent?.color ?? ''} />
    </>
  );
}

/** Reasons of a pause, as buyers read them; one fills the field. */
function Presets() {
  const fill = (text: string) => (event: Event) => {
    const field = (event.currentTarget as HTMLButtonElement).form!.elements.namedItem('note') as HTMLTextAreaElement;
    field.value = text;
    field.focus();
  };
  return (
    <div class="flex flex-wrap gap-2" role="group" aria-label={ot('op.suggestions')}>
      {(['op.pause.technical', 'op.pause.stock', 'op.pause.price'] as const).map((key) => (
        <button key={key} type="button" class="chip min-h-10 px-3 whitespace-normal hover:border-edge" onClick={fill(ot(key))}>
          {ot(key)}
        </button>
      ))}
    </div>
  );
}

/** The steps that can be taken now; each is confirmed. */
function Acts({ sale, reload }: { sale: AdminSale; reload: () => void }) {
  const asking = useSignal<SaleAction | null>(null);
  const acts = currentUser.value ? actionsOf(sale, currentUser.value, now()) : [];
  const [, go] = useLocation();
  const act = asking.value;
  let copy: string | undefined;
  let asked: Asked | null | undefined;
  const close = (): void => void (asking.value = null);
  return (
    <div class="flex flex-wrap gap-3 empty:hidden">
      {acts.map((each) => (
        <button
          key={each}
          class={`btn ${['end', 'cancel', 'reject', 'withdraw', 'discard', 'pause', 'duplicate', 'template', 'reschedule', 'extend', 'describe'].includes(each) ? '' : 'btn-main'}`}
          onClick={() => (asking.value = each)}
        >
          {ot(`op.act.${each}`)}
        </button>
      ))}
      {EDITABLE.includes(sale.status) && (
        <Link class="btn" href={`/operate/sales/${sale.id}/edit`}>
          {ot('op.edit')}
        </Link>
      )}
      {act && (
        <Dialog title={ot(`op.act.${act}`)} close={close}>
          <Form
            label={ot(`op.act.${act}`)}
            send={async (values) => {
              const approved = act === 'approve' && sale.status === 'APPROVED'; // by the try before, whose scheduling was refused
              let outcome = approved ? null : await runAction(act, sale, values);
              if ('schedule' in values && !outcome?.userErrors.length) {
                const [starts, ends] = [sale.startsAt, sale.endsAt].map((at) => localInput(Date.parse(at)));
                outcome = await runAction('schedule', sale, { starts: starts!, ends: ends! });
                if (outcome?.userErrors.length) reload();
              }
              asked = outcome?.intervention;
              copy = act === 'duplicate' ? outcome?.sale?.id : undefined;
              return outcome?.userErrors[0];
            }}
            done={() => {
              close();
              acted(asked);
              if (copy) go(`/operate/sales/${copy}`);
              else reload();
            }}
            beside={
              <>
                {act === 'approve' && (
                  <button class="btn" name="schedule" value="yes">
                    {ot('op.approveAndSchedule')}
                  </button>
                )}
                <button type="button" class="btn" onClick={close}>
                  {ot('op.back')}
                </button>
              </>
            }
          >
            <p>{ot(`op.sure.${act}`)}</p>
            {(act === 'schedule' || act === 'reschedule' || act === 'duplicate') && <Times sale={sale} />}
            {act === 'extend' && <Times sale={sale} endOnly />}
            {act === 'describe' && <Texts sale={sale} />}
            {act === 'template' && <TemplateName title={sale.title} />}
            {act === 'pause' && <Presets />}
            {needs[act].note !== 'none' && (
              <Note label={ot(needs[act].note === 'required' ? 'op.reason' : 'op.note')} required={needs[act].note === 'required'} />
            )}
          </Form>
        </Dialog>
      )}
    </div>
  );
}
