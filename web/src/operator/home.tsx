/** The first page of the admin pages: what waits for a decision, what runs, what opens next. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/request';
import { Interventions } from '../documents/interventions';
import { SetAside } from '../documents/letters';
import { AdminSales } from '../documents/operator';
import { RefundsWaiting } from '../documents/refunds';
import { count } from '../i18n/text';
import { Broken, Loading, Stale, Title } from '../ui/bits';
import type { AdminSale, SaleStatus } from './acts';
import { SaleRow } from './sales';
import { ot, type OpKey } from './texts';

/** How many messages and payments wait in the inbox, as last read. */
export const inbox = signal(0);
/** How many refunds wait for a decision, as last read. */
export const refundsWaiting = signal(0);

/** Statuses of the sales that need attention, from the most urgent. */
const SHOWN: SaleStatus[] = ['LIVE', 'PAUSED', 'PREHEATED', 'SCHEDULED', 'APPROVED', 'PENDING_APPROVAL', 'DRAFT', 'REJECTED'];

async function load(abort: AbortSignal) {
  const [{ sales }, { deadLetters, heldPayments }, { interventions }, { refunds }] = await Promise.all([
    request(AdminSales, { after: null, search: null, statuses: SHOWN }, abort),
    request(SetAside, {}, abort),
    request(Interventions, { saleId: null, states: ['REQUESTED'] }, abort),
    request(RefundsWaiting, {}, abort),
  ]);
  refundsWaiting.value = refunds?.totalCount ?? 0;
  inbox.value = (deadLetters?.length ?? 0) + (heldPayments?.length ?? 0);
  return { sales: (sales?.edges ?? []).map(({ node }) => node), inbox: inbox.value, refunds: refundsWaiting.value, requested: interventions ?? [] };
}

/** The page. */
export function Home() {
  const { page, reload } = useLoad('admin home', load);
  switch (page.value.state) {
    case 'loading':
    case 'missing':
      return <Loading />;
    case 'failed':
      return <Broken fault={page.value.fault} again={reload} />;
    case 'ready': {
      const { sales, inbox, refunds, requested } = page.value.data;
      const of = (...statuses: SaleStatus[]): AdminSale[] =>
        sales.filter(({ status }) => statuses.includes(status)).sort((a, b) => Date.parse(a.startsAt) - Date.parse(b.startsAt));
      return (
        <div class="grid gap-8">
          <div class="flex flex-wrap items-center justify-between gap-3">
            <Title>{ot('op.home')}</Title>
            <Link href="/operate/new" class="btn btn-main">
              {ot('op.newSale')}
            </Link>
          </div>
          <Stale fault={page.value.fault} again={reload} />
          {(inbox > 0 || refunds > 0 || requested.length > 0) && (
            <Group name="op.waiting">
              {refunds > 0 && <Waits href="/operate/refunds" text={ot('op.refunds')} n={refunds} />}
              {inbox > 0 && <Waits href="/operate/aside" text={ot('op.inbox')} n={inbox} />}
              {requested.map(({ id, sale, kind }) => (
                <Waits key={id} href={sale ? `/operate/sales/${sale.id}` : '/operate'} text={`${ot(`op.did.${kind}`)} · ${sale?.title ?? ''}`} n={1} />
              ))}
            </Group>
          )}
          <SaleGroup name="op.group.running" sales={of('LIVE', 'PAUSED')} />
          <SaleGroup name="op.group.review" sales={of('PENDING_APPROVAL')} />
          <SaleGroup name="op.nextUp" sales={of('PREHEATED', 'SCHEDULED', 'APPROVED')} />
          <SaleGroup name="op.group.draft" sales={of('DRAFT', 'REJECTED')} />
          {!sales.length && <p class="note">{ot('op.none')}</p>}
        </div>
      );
    }
  }
}

function Group({ name, children }: { name: OpKey; children: ComponentChildren }) {
  return (
    <section>
      <h2 class="head mb-3">{ot(name)}</h2>
      <ul class="grid gap-2">{children}</ul>
    </section>
  );
}

function SaleGroup({ name, sales }: { name: OpKey; sales: AdminSale[] }) {
  if (!sales.length) return null;
  return (
    <Group name={name}>
      {sales.map((sale) => (
        <SaleRow key={sale.id} sale={sale} />
      ))}
    </Group>
  );
}

/** Something that waits for a decision. */
function Waits({ href, text, n }: { href: string; text: string; n: number }) {
  return (
    <li class="card relative flex items-center gap-4 border-warn px-4 py-3">
      <Link href={href} class="grow font-semibold after:absolute after:inset-0">
        {text}
      </Link>
      <span class="chip text-warn tabular-nums">{count(n)}</span>
    </li>
  );
}
