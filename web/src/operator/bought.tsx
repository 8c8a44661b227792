/** Who bought in a sale: orders of accounts that have something in common, and their hold for review. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { request } from '../api/client';
import { useLoad } from '../api/load';
import type { ResultOf } from '@seckill/client/operation';
import { ClusteredSale, HoldOrders, SaleClusters } from '../documents/bought';
import { count, isolate, span } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Form, Note } from './form';
import { Paged } from './paged';
import { Shell } from './shell';
import { ot } from './texts';

type Cluster = NonNullable<NonNullable<ResultOf<typeof SaleClusters>['sale']>['clusters']>['edges'][number]['node'];

/** The page. */
export function Bought({ id }: { id: string }) {
  const of = useLoad(`bought-sale ${id}`, async (signal) => (await request(ClusteredSale, { id }, signal)).sale);
  const beside = (
    <div class="flex flex-wrap gap-3">
      <Link class="btn" href={`/operate/orders?sale=${id}&held=1`}>
        {ot('op.inbox.ORDER_REVIEW')}
      </Link>
      <Link class="btn" href={`/operate/sales/${id}`}>
        {ot('op.sale')}
      </Link>
    </div>
  );
  return (
    <Shell of={of} title={({ title }) => ot('op.bought.of', { title })} beside={beside}>
      {() => (
        <>
          <p class="text-soft">{ot('op.bought.how')}</p>
          <Paged name={`bought ${id}`} live none="op.bought.none" ask={async (after, signal) => (await request(SaleClusters, { id, after }, signal)).sale?.clusters ?? null}>
            {(clusters, reload) => (
              <ul class="grid grid-cols-1 gap-2">
                {clusters.map((cluster) => (
                  <Row key={cluster.label} saleId={id} cluster={cluster} reload={reload} />
                ))}
              </ul>
            )}
          </Paged>
        </>
      )}
    </Shell>
  );
}

/** A time after the opening: programs order within parts of a second. */
const after = (ms: number): string => (ms < 60_000 ? ot('op.bought.seconds', { n: count(ms / 1000) }) : span(ms / 1000));

interface Props {
  saleId: string;
  cluster: Cluster;
  reload: () => void;
}

function Row({ saleId, cluster, reload }: Props) {
  const holding = useSignal(false);
  const { label, heldOrders, unpaidOrders } = cluster;
  const facts = [
    [ot('op.bought.accounts'), count(cluster.accounts)],
    [ot('op.orders'), count(cluster.orders)],
    [ot('op.units'), count(cluster.units)],
    [ot('op.bought.unpaid'), count(unpaidOrders)],
    [ot('op.bought.held'), count(heldOrders)],
    [ot('op.bought.first'), after(cluster.firstAfterOpeningMs)],
    [ot('op.bought.last'), after(cluster.lastAfterOpeningMs)],
  ];
  return (
    <li class="card grid grid-cols-1 gap-3 px-4 py-3">
      <div class="flex flex-wrap items-center gap-x-4 gap-y-2">
        <p class="grow font-semibold">
          {ot(`op.bought.${cluster.kind}`)} <span class="font-normal text-soft">{label}</span>
        </p>
        <Link class="link" href={`/operate/orders?${new URLSearchParams({ sale: saleId, cluster: label })}`}>
          {ot('op.bought.orders', { label: isolate(label) })}
        </Link>
        {unpaidOrders > heldOrders && (
          <button class="btn" onClick={() => (holding.value = true)}>
            {ot('op.bought.hold')}
            <span class="sr-only"> {label}</span>
          </button>
        )}
      </div>
      <dl class="flex flex-wrap gap-x-6 gap-y-1 text-sm tabular-nums">
        {facts.map(([name, value]) => (
          <div key={name} class="flex gap-2">
            <dt class="text-soft">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {holding.value && <Hold saleId={saleId} label={label} close={() => (holding.value = false)} reload={reload} />}
    </li>
  );
}

/** Asks for the reason, and holds the unpaid orders of a cluster. */
function Hold({ saleId, label, close, reload }: { saleId: string; label: string; close: () => void; reload: () => void }) {
  let outcome = { held: 0, left: 0 };
  return (
    <Dialog title={ot('op.bought.hold.of', { label: isolate(label) })} close={close}>
      <Form
        label={ot('op.bought.hold')}
        send={async ({ note = '' }) => {
          const { holdOrders } = await request(HoldOrders, { input: { saleId, cluster: label, note } });
          if (holdOrders) outcome = holdOrders;
          return holdOrders?.userErrors[0];
        }}
        done={() => {
          close();
          toast(ot('op.bought.holdDone', { n: count(outcome.held), left: count(outcome.left) }));
          reload();
        }}
      >
        <p>{ot('op.bought.holdHow')}</p>
        <Note label={ot('op.reason')} required />
      </Form>
    </Dialog>
  );
}
