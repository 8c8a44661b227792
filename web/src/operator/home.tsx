/** The first page of the admin pages: what waits for a decision, what runs, what opens next. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { InboxCountNow } from '../documents/inbox';
import { AdminSales } from '../documents/operator';
import { count } from '../i18n/text';
import { FaultMessage, Loading, Stale, Title } from '../ui/bits';
import type { AdminSale, SaleStatus } from './acts';
import { SaleRow } from './sale-row';
import { ot, type OpKey } from './texts';

/** Statuses of the sales that need attention, from the most urgent. */
const SHOWN: SaleStatus[] = ['LIVE', 'PAUSED', 'PREHEATED', 'SCHEDULED', 'APPROVED', 'PENDING_APPROVAL', 'DRAFT', 'REJECTED'];

async function load(abort: AbortSignal) {
  const [{ sales }, { inbox }] = await Promise.all([
    request(AdminSales, { after: null, search: null, statuses: SHOWN }, abort),
    request(InboxCountNow, {}, abort),
  ]);
  return { sales: (sales?.edges ?? []).map(({ node }) => node), waiting: inbox?.totalCount ?? 0 };
}

export function Home() {
  const { page, reload } = useLoad('admin home', load);
  switch (page.value.state) {
    case 'loading':
    case 'missing':
      return <Loading />;
    case 'failed':
      return <FaultMessage fault={page.value.fault} again={reload} />;
    case 'ready': {
      const { sales, waiting } = page.value.data;
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
          {waiting > 0 && (
            <Group name="op.waiting">
              <Waits href="/operate/inbox" text={ot('op.inbox')} n={waiting} />
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
