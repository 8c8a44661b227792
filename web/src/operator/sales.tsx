/** All sales, newest first. */
import { Link } from 'wouter-preact';
import { request } from '../api/client';
import { AdminSales } from '../documents/operator';
import { Title } from '../ui/bits';
import type { SaleStatus } from './acts';
import { Paged } from './paged';
import { SaleRow } from './sale-row';
import { Search, useQuery } from './search';
import { Templates } from './templates';
import { ot } from './texts';

/** The groups of statuses that the list can be narrowed to. */
const GROUPS = {
  running: ['LIVE', 'PAUSED'],
  upcoming: ['APPROVED', 'SCHEDULED', 'PREHEATED'],
  review: ['PENDING_APPROVAL'],
  draft: ['DRAFT', 'REJECTED'],
  ended: ['ENDED', 'CANCELLED'],
} as const satisfies Record<string, SaleStatus[]>;

/** A group of statuses, as in the URL. */
export type SaleGroupName = keyof typeof GROUPS;

/** All sales, newest first. */
export function Sales() {
  const [search, setSearch] = useQuery('q');
  const [asked, setGroup] = useQuery('group');
  const group = asked in GROUPS ? (asked as SaleGroupName) : null;
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
      <Templates />
      <div role="group" aria-label={ot('op.status')} class="mb-4 flex flex-wrap gap-2">
        {[null, ...(Object.keys(GROUPS) as SaleGroupName[])].map((each) => (
          <button
            key={each ?? ''}
            class="chip min-h-10 px-3 hover:border-edge aria-pressed:border-ink aria-pressed:bg-ink aria-pressed:text-page"
            aria-pressed={group === each}
            onClick={() => setGroup(each ?? '')}
          >
            {ot(each ? `op.group.${each}` : 'op.all')}
          </button>
        ))}
      </div>
      <Paged
        name={`admin-sales ${search} ${group}`}
        live
        ask={async (after, signal) =>
          (await request(AdminSales, { after, search: search || null, statuses: group && [...GROUPS[group]] }, signal)).sales
        }
      >
        {(sales) => (
          <ul class="grid grid-cols-1 gap-2">
            {sales.map((sale) => (
              <SaleRow key={sale.id} sale={sale} />
            ))}
          </ul>
        )}
      </Paged>
    </>
  );
}
