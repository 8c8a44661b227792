/** All sales, newest first. */
import { Link } from 'wouter-preact';
import { request } from '../api/request';
import { DeskSales } from '../documents/operator';
import { count } from '../i18n/text';
import { Title, When } from '../ui/bits';
import type { SaleStatus } from './acts';
import { Paged } from './paged';
import { Search, useQuery } from './search';
import { ot } from './texts';

const tones: Partial<Record<SaleStatus, string>> = { LIVE: 'text-good', PAUSED: 'text-warn', PENDING_APPROVAL: 'text-warn' };

/** Where a sale stands. */
export function StatusChip({ status }: { status: SaleStatus }) {
  return <span key={status} class={`chip ${tones[status] ?? 'text-soft'}`}>{ot(`op.status.${status}`)}</span>;
}

/** The page. */
export function Sales() {
  const [search, setSearch] = useQuery('q');
  return (
    <>
      <div class="mb-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.sales')}</Title>
        <div class="flex flex-wrap gap-3 max-sm:w-full">
          <Search label={ot('op.search')} text={search} found={setSearch} />
          <Link href="/operate/new" class="btn btn-main">
            {ot('op.newSale')}
          </Link>
        </div>
      </div>
      <Paged
        name={`desk-sales ${search}`}
        ask={async (after, signal) => (await request(DeskSales, { after, search: search || null }, signal)).sales}
      >
        {(sales) => (
          <ul class="grid gap-2">
            {sales.map((sale) => (
              <li key={sale.id} class="card relative flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 has-[a:hover]:border-edge">
                <Link href={`/operate/sales/${sale.id}`} class="grow basis-32 font-semibold after:absolute after:inset-0">
                  {sale.title}
                </Link>
                <span class="flex flex-wrap gap-x-4 text-sm text-soft tabular-nums max-lg:order-last max-lg:w-full">
                  <When at={sale.startsAt} zone />
                  <span>
                    {ot('op.stock')} {count(sale.items.reduce((sum, { stock }) => sum + (stock.total ?? 0), 0))}
                  </span>
                </span>
                <StatusChip status={sale.status} />
              </li>
            ))}
          </ul>
        )}
      </Paged>
    </>
  );
}
