/** What operators changed or want to change, with the confirmation by a second person. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { usePaged } from '../api/paged';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import type { ResultOf } from '@seckill/client/operation';
import { AwaitingActs, DecideIntervention, Interventions as InterventionsDoc, type InterventionParts } from '../documents/interventions';
import { count, isolate, moment, money } from '../i18n/text';
import { DateTime, More } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { Form, Note } from './form';
import { Changes, fieldsOf } from './log';
import { Part } from './shell';
import { ot } from './texts';

export type Intervention = ResultOf<typeof InterventionParts>;

/** States that are not final. */
const UNDER_WAY = ['REQUESTED', 'TAKING', 'FINISHING', 'RETURNING', 'REFUNDING'];
const REFRESH_MS = 1_000;

/** The changes of a sale; nothing where there are none. `moved` is called after the first load and after each change of a state. */
export function Interventions({ saleId, moved }: { saleId: string; moved: () => void }) {
  const { page, reload, next, busy } = usePaged(
    `interventions ${saleId}`,
    async (after, signal) => (await request(InterventionsDoc, { saleId, after }, signal)).interventions,
  );
  const { nodes: found, more } = page.value.state === 'ready' ? page.value.data : { nodes: [], more: false };
  const moving = found.some(({ state }) => UNDER_WAY.includes(state));
  useEffect(() => {
    if (!moving) return;
    const timer = setTimeout(reload, REFRESH_MS);
    return () => clearTimeout(timer);
  }, [moving, page.value]);
  useRefresh(reload); // another operator asks for a change without changing the sale
  const states = found.map(({ state }) => state).join();
  useEffect(() => {
    if (states) moved();
  }, [states]);
  if (!found.length) return null;
  return (
    <section class="card p-5">
      <h2 class="head mb-3">{ot('op.interventions')}</h2>
      <ul class="grid gap-2">
        {found.map((each) => (
          <Row key={each.id} act={each} reload={reload} />
        ))}
      </ul>
      {more && <More next={next} busy={busy} />}
    </section>
  );
}

/** The acts of two kinds that wait for a second person, and their reload. */
export function useAwaiting(one: Intervention['kind'], other: Intervention['kind']): { acts: Intervention[]; reload: () => Promise<void> } {
  const { page, reload } = useLoad(`awaiting ${one}`, async (signal) => {
    const found = await request(AwaitingActs, { one, other }, signal);
    return [found.one, found.other].flatMap((each) => each?.edges.map(({ node }) => node) ?? []);
  });
  useRefresh(reload);
  return { acts: page.value.state === 'ready' ? page.value.data : [], reload };
}

/** Those acts, of any sale; nothing where there are none. */
export function Awaiting({ acts, decided }: { acts: Intervention[]; decided: () => void }) {
  if (!acts.length) return null;
  return (
    <Part name="op.awaiting" none="op.none" many={acts.length}>
      <ul class="grid grid-cols-1 gap-2">
        {acts.map((each) => (
          <Row key={each.id} act={each} reload={decided} linked />
        ))}
      </ul>
    </Part>
  );
}

/** What an intervention does. */
function whatOf({ kind, order, units, endsAt, item, goods, amount }: Intervention): string {
  switch (kind) {
    case 'VOID_ORDER':
      return order && units < order.quantity
        ? `${ot('op.refund.of', { number: order.number })} · ${ot('op.refundUnits', { n: count(units), of: count(order.quantity) })}`
        : ot('op.void.of', { number: order?.number ?? '' });
    case 'EXTEND_SALE':
      return ot('op.extend.of', { time: endsAt ? moment(endsAt) : '' });
    case 'DRAW_VALUE':
      return ot('op.drawValue.of', { name: item?.goods.name ?? '' });
    case 'CHANGE_SALE':
      return ot('op.change.sale');
    case 'CHANGE_GOODS':
      return ot('op.change.goods', { name: goods?.name ?? '' });
    case 'REFUND':
    case 'SETTLE_REFUND':
    case 'RETURN_PAYMENT':
    case 'SETTLE_PAYMENT':
      return [ot(`op.money.${kind}`), amount && money(amount), order?.number].filter(Boolean).join(' · ');
    case 'ADJUST_STOCK':
      return ot('op.adjust.of', { units: units > 0 ? `+${count(units)}` : count(units), name: item?.goods.name ?? '' });
  }
}

/** An act. `linked` names its sale, on pages of several sales. */
function Row({ act, reload, linked }: { act: Intervention; reload: () => void; linked?: boolean }) {
  const deciding = useSignal<boolean | null>(null);
  const what = whatOf(act);
  const mine = act.requestedBy?.id === currentUser.value?.id;
  const confirm = deciding.value;
  return (
    <li class="note grid gap-2">
      <p class="flex flex-wrap items-center justify-between gap-2">
        <span class="font-medium">{what}</span>
        <span class="chip">{ot(`op.state.${act.state}`)}</span>
      </p>
      <p class="text-sm text-soft">
        <DateTime at={act.createdAt} /> · <bdi>{act.requestedBy?.displayName ?? ot('op.byClock')}</bdi>
        {act.note && ` · ${isolate(act.note)}`}
        {act.decidedBy && ` · ${act.decision ? ot('op.named', { name: act.decidedBy.displayName, text: act.decision }) : isolate(act.decidedBy.displayName)}`}
      </p>
      {linked && act.sale && (
        <Link class="link w-fit text-sm" href={`/operate/sales/${act.sale.id}`}>
          <bdi>{act.sale.title}</bdi>
        </Link>
      )}
      <Changes fields={fieldsOf(act.changes)} names={{}} />
      {act.state === 'REQUESTED' && (
        <div class="flex flex-wrap gap-3">
          {!mine && (
            <button class="btn btn-main" onClick={() => (deciding.value = true)}>
              {ot('op.confirm')}
            </button>
          )}
          <button class="btn" onClick={() => (deciding.value = false)}>
            {ot(mine ? 'op.takeBack' : 'op.decline')}
          </button>
        </div>
      )}
      {confirm !== null && (
        <Dialog title={what} close={() => (deciding.value = null)}>
          <Form
            label={ot(confirm ? 'op.confirm' : mine ? 'op.takeBack' : 'op.decline')}
            send={async ({ note }) => {
              const { decideIntervention } = await request(DecideIntervention, {
                input: { interventionId: act.id, confirm, note: note || null },
              });
              return decideIntervention?.userErrors[0];
            }}
            done={() => {
              deciding.value = null;
              reload();
            }}
          >
            <Note label={ot('op.note')} />
          </Form>
        </Dialog>
      )}
    </li>
  );
}
