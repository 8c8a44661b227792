/** Refunds of all sales: those to decide, and what became of the others. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import type { Connection } from '../api/paged';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Money } from '@seckill/client/types';
import { DecideRefund } from '../documents/operator';
import { DecidedRefunds, RefundCounts, SettleRefund, WaitingRefunds, type ListedRefundParts } from '../documents/refunds';
import { count, money } from '../i18n/text';
import { FaultMessage, Loading, Stale, Title, DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Form, Note } from './form';
import { Paged } from './paged';
import { ot, type OpKey } from './texts';

type Refund = ResultOf<typeof ListedRefundParts>;

export function Refunds() {
  const { page, reload: recount } = useLoad('refunds', (signal) => request(RefundCounts, {}, signal));
  useRefresh(recount);
  const loads = useSignal(0);
  const reload = (): void => {
    loads.value++; // the lists load again as well
    void recount();
  };
  switch (page.value.state) {
    case 'loading':
    case 'missing':
      return <Loading />;
    case 'failed':
      return <FaultMessage fault={page.value.fault} again={reload} />;
    case 'ready': {
      const { waiting, decided } = page.value.data;
      return (
        <div class="grid grid-cols-1 gap-6">
          <div class="flex flex-wrap items-center justify-between gap-3">
            <Title>{ot('op.refunds')}</Title>
            <button class="btn" onClick={reload}>
              {ot('op.refresh')}
            </button>
          </div>
          <Stale fault={page.value.fault} again={reload} />
          <Part name="op.toDecide" many={waiting?.totalCount ?? 0}>
            <Paged key={loads.value} name="refunds-waiting" live ask={async (after, signal) => (await request(WaitingRefunds, { after }, signal)).waiting}>
              {(nodes) => (
                <ul class="grid grid-cols-1 gap-2">
                  {nodes.map((refund) => (
                    <Row key={refund.id} refund={refund}>
                      {refund.state === 'FAILED' && (
                        <p class="text-sm">
                          <span class="chip">{ot('op.refundState.FAILED')}</span> {refund.failure}
                        </p>
                      )}
                      <Decide refund={refund} reload={reload} />
                    </Row>
                  ))}
                </ul>
              )}
            </Paged>
          </Part>
          <Part name="op.decided" many={decided?.totalCount ?? 0}>
            <Paged key={loads.value} name="refunds-decided" live ask={newestDecided}>
              {(nodes) => (
                <ul class="grid grid-cols-1 gap-2">
                  {nodes.map((refund) => (
                    <Row key={refund.id} refund={refund}>
                      <p class="text-sm text-soft">
                        <span class="chip">{ot(`op.refundState.${refund.state}`)}</span>{' '}
                        {refund.decidedAt && <DateTime at={refund.decidedAt} />} · <bdi>{refund.decidedBy?.displayName ?? ot('op.byClock')}</bdi>
                        {refund.decision && <> · <bdi>{refund.decision}</bdi></>}
                      </p>
                    </Row>
                  ))}
                </ul>
              )}
            </Paged>
          </Part>
        </div>
      );
    }
  }
}

/** The decided refunds, newest first. The API has them oldest first, so the pages are read from the end. */
async function newestDecided(before: string | null, signal: AbortSignal): Promise<Connection<Refund> | null> {
  const { decided } = await request(DecidedRefunds, { before }, signal);
  return decided && { edges: [...decided.edges].reverse(), pageInfo: { hasNextPage: decided.pageInfo.hasPreviousPage, endCursor: decided.pageInfo.startCursor } };
}

function Part(props: { name: OpKey; many: number; children: ComponentChildren }) {
  return (
    <section class="card p-5">
      <h2 class="head mb-3">
        {ot(props.name)} <span class="font-normal text-soft tabular-nums">{count(props.many)}</span>
      </h2>
      {props.many ? props.children : <p class="text-soft">{ot('op.none')}</p>}
    </section>
  );
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
              if (decide === 'settle') return (await request(SettleRefund, { input: { refundId: refund.id, reason: note } })).settleRefund?.userErrors[0];
              const approve = decide === 'approve';
              const input = { refundId: refund.id, approve, note: note || null, restock: restock !== undefined, ...(approve && { amount: refund.amount }) };
              return (await request(DecideRefund, { input })).decideRefund?.userErrors[0];
            }}
            done={() => {
              close();
              toast(ot('op.saved'));
              reload();
            }}
          >
            <p>{ot(sure[decide], { amount })}</p>
            {decide === 'approve' && !failed && (
              <label class="flex items-center gap-2">
                <input type="checkbox" name="restock" class="size-4 accent-fill" defaultChecked />
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
