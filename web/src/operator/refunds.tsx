/** Refunds of all sales: those to decide, and what became of the others. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import type { Connection } from '../api/paged';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Money } from '@seckill/client/types';
import { DecideRefund } from '../documents/operator';
import { DecidedRefunds, RefundCounts, SettleRefund, WaitingRefunds, type ListedRefundParts } from '../documents/refunds';
import { count, money } from '../i18n/text';
import { DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { acted, type Asked } from './asked';
import { Form, Note } from './form';
import { Awaiting, useAwaiting } from './interventions';
import { Rows } from './paged';
import { Part, Shell, useCounts } from './shell';
import { ot } from './texts';

type Refund = ResultOf<typeof ListedRefundParts>;

export function Refunds() {
  const { of, loads } = useCounts('refunds', (signal) => request(RefundCounts, {}, signal));
  const awaiting = useAwaiting('REFUND', 'SETTLE_REFUND');
  const reload = (): void => void Promise.all([awaiting.reload(), of.reload()]);
  return (
    <Shell of={of} title={() => ot('op.refunds')}>
      {({ waiting, decided }) => (
        <>
          <Awaiting acts={awaiting.acts} decided={reload} />
          <Part name="op.toDecide" none="op.none" many={waiting?.totalCount ?? 0}>
            <Rows
              key={loads}
              name="refunds-waiting"
              live
              ask={async (after, signal) => (await request(WaitingRefunds, { after }, signal)).waiting}
              row={(refund) => (
                <Row key={refund.id} refund={refund}>
                  {refund.state === 'FAILED' && (
                    <p class="text-sm">
                      <span class="chip">{ot('op.refundState.FAILED')}</span> {refund.failure}
                    </p>
                  )}
                  {awaiting.acts.some(({ order }) => order && order.id === refund.order?.id) ? (
                    <p class="text-sm font-medium text-warn">{ot('op.awaitingHere')}</p>
                  ) : (
                    <Decide refund={refund} reload={reload} />
                  )}
                </Row>
              )}
            />
          </Part>
          <Part name="op.decided" none="op.none" many={decided?.totalCount ?? 0}>
            <Rows
              key={loads}
              name="refunds-decided"
              live
              ask={newestDecided}
              row={(refund) => (
                <Row key={refund.id} refund={refund}>
                  <p class="text-sm text-soft">
                    <span class="chip">{ot(`op.refundState.${refund.state}`)}</span>{' '}
                    {refund.decidedAt && <DateTime at={refund.decidedAt} />} · <bdi>{refund.decidedBy?.displayName ?? ot('op.byClock')}</bdi>
                    {refund.decision && <> · <bdi>{refund.decision}</bdi></>}
                  </p>
                </Row>
              )}
            />
          </Part>
        </>
      )}
    </Shell>
  );
}

/** The decided refunds, newest first. The API has them oldest first, so the pages are read from the end. */
async function newestDecided(before: string | null, signal: AbortSignal): Promise<Connection<Refund> | null> {
  const { decided } = await request(DecidedRefunds, { before }, signal);
  return decided && { edges: [...decided.edges].reverse(), pageInfo: { hasNextPage: decided.pageInfo.hasPreviousPage, endCursor: decided.pageInfo.startCursor } };
}

function Row({ refund, children }: { refund: Refund; children: ComponentChildren }) {
  const { order } = refund;
  return (
    <li class="note grid grid-cols-1 gap-2">
      <p class="flex flex-wrap items-center gap-x-4 gap-y-1">
        {order && (
          <Link href={`/orders/${order.id}`} class="link font-semibold tabular-nums">
            {order.number}
          </Link>
        )}
        <span class="grow"><bdi>{order?.sale?.title}</bdi></span>
        <span class="text-sm text-soft"><bdi>{order && (order.buyer.account ?? order.buyer.displayName)}</bdi></span>
        <strong class="tabular-nums">
          {order && refund.quantity && order.quantity > 1 && <span class="font-normal">{ot('op.refundUnits', { n: count(refund.quantity), of: count(order.quantity) })} · </span>}
          {money(refund.amount)}
        </strong>
      </p>
      <p class="text-sm break-words text-soft">
        <DateTime at={refund.createdAt} /> · <bdi>{refund.reason}</bdi>
      </p>
      {children}
    </li>
  );
}

interface Props {
  refund: { id: string; amount: Money; state?: Refund['state'] };
  reload: () => void;
}

const sure = { approve: 'op.sure.sendBack', refuse: 'op.sure.refuse', settle: 'op.sure.settle' } as const;

/** Approves or refuses a refund, or ends one that failed: sends it again, or notes that the money was given back otherwise. What is approved is the amount on the button. */
export function Decide({ refund, reload }: Props) {
  const asking = useSignal<'approve' | 'refuse' | 'settle' | null>(null);
  const amount = money(refund.amount);
  const failed = refund.state === 'FAILED';
  const names = { approve: ot(failed ? 'op.refundAgain' : 'op.refundYes', { amount }), refuse: ot('op.refundNo'), settle: ot('op.refundSettle') };
  const close = (): void => void (asking.value = null);
  const decide = asking.value;
  let asked: Asked | null | undefined;
  return (
    <div class="flex flex-wrap gap-3">
      <button class="btn btn-main" onClick={() => (asking.value = 'approve')}>
        {names.approve}
      </button>
      {failed ? (
        <button class="btn" onClick={() => (asking.value = 'settle')}>
          {names.settle}
        </button>
      ) : (
        <button class="btn" onClick={() => (asking.value = 'refuse')}>
          {names.refuse}
        </button>
      )}
      {decide && (
        <Dialog title={names[decide]} close={close}>
          <Form
            label={names[decide]}
            send={async ({ note = '', restock }) => {
              if (decide === 'settle') {
                const { settleRefund } = await request(SettleRefund, { input: { refundId: refund.id, reason: note } });
                asked = settleRefund?.intervention;
                return settleRefund?.userErrors[0];
              }
              const approve = decide === 'approve';
              const input = { refundId: refund.id, approve, note: note || null, restock: restock !== undefined, ...(approve && { amount: refund.amount }) };
              const { decideRefund } = await request(DecideRefund, { input });
              asked = decideRefund?.intervention;
              return decideRefund?.userErrors[0];
            }}
            done={() => {
              close();
              acted(asked);
              reload();
            }}
          >
            <p>{ot(sure[decide], { amount })}</p>
            {decide === 'approve' && !failed && (
              <label class="flex items-center gap-2">
                <input type="checkbox" name="restock" class="size-4 accent-ink" defaultChecked />
                {ot('op.restock')}
              </label>
            )}
            <Note label={ot(decide === 'approve' ? 'op.note' : 'op.reason')} required={decide !== 'approve'} />
          </Form>
        </Dialog>
      )}
    </div>
  );
}
