/** The first page of the admin pages: what waits for a decision, what runs, what opens next. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { Inbox } from '../documents/inbox';
import type { ResultOf } from '@seckill/client/operation';
import { HomeSales } from '../documents/operator';
import { count } from '../i18n/text';
import { InboxRow } from './inbox';
import { Missing, Pulse } from './pulse';
import { SaleRow, type SaleOfList } from './sale-row';
import type { SaleGroupName } from './sales';
import { Shell } from './shell';
import { ot, type OpKey } from './texts';

/** Most entries of the inbox on this page; the inbox has them all. */
const MOST_WAITING = 5;

async function load(abort: AbortSignal) {
  const [groups, { inbox }] = await Promise.all([request(HomeSales, {}, abort), request(Inbox, {}, abort)]);
  return { groups, waiting: inbox?.totalCount ?? 0, first: inbox?.entries.slice(0, MOST_WAITING) ?? [] };
}

export function Home() {
  const loaded = useLoad('admin home', load);
  useRefresh(loaded.reload);
  const create = (
    <Link href="/operate/new" class="btn btn-main">
      {ot('op.newSale')}
    </Link>
  );
  return (
    <Shell of={loaded} title={() => ot('op.home')} beside={create} class="grid-cols-1 gap-8">
      {({ groups, waiting, first }) => (
        <>
          {waiting > 0 && (
            <Group name="op.waiting">
              {first.map((entry) => (
                <InboxRow key={entry.kind + entry.subjectId} entry={entry} />
              ))}
              {waiting > first.length && <Waits href="/operate/inbox" text={ot('op.inbox')} n={waiting} />}
            </Group>
          )}
          <SaleGroup name="op.group.running" of={groups.running} group="running" below={(sale) => <Pulse sale={sale} />} />
          <SaleGroup name="op.group.review" of={groups.review} group="review" below={(sale) => <Missing sale={sale} server={groups.serverInfo} />} />
          <SaleGroup name="op.nextUp" of={groups.upcoming} group="upcoming" below={(sale) => <Missing sale={sale} server={groups.serverInfo} />} />
          <SaleGroup name="op.group.draft" of={groups.draft} group="draft" />
          {![groups.running, groups.review, groups.upcoming, groups.draft].some((each) => each?.edges.length) && <p class="note">{ot('op.none')}</p>}
        </>
      )}
    </Shell>
  );
}

function Group({ name, children }: { name: OpKey; children: ComponentChildren }) {
  return (
    <section>
      <h2 class="head mb-3">{ot(name)}</h2>
      <ul class="grid grid-cols-1 gap-2">{children}</ul>
    </section>
  );
}

/** The sales of a group, with a link to the list where it has more. */
function SaleGroup({ name, of, group, below }: { name: OpKey; of: ResultOf<typeof HomeSales>['running']; group: SaleGroupName; below?: (sale: SaleOfList) => ComponentChildren }) {
  if (!of?.edges.length) return null;
  return (
    <Group name={name}>
      {of.edges.map(({ node }) => (
        <SaleRow key={node.id} sale={node}>{below?.(node)}</SaleRow>
      ))}
      {of.pageInfo.hasNextPage && (
        <li>
          <Link class="link" href={`/operate/sales?group=${group}`}>
            {ot('op.seeAll')}
            <span class="sr-only"> {ot(name)}</span>
          </Link>
        </li>
      )}
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
