/** Accounts: search, and the orders of one. */
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/request';
import { SearchUsers } from '../documents/operator';
import { Broken, Loading, Title } from '../ui/bits';
import { Search, useQuery } from './search';
import { ot } from './texts';

const SHORTEST_SEARCH = 2;

/** The page. */
export function People() {
  const [text, setText] = useQuery('q');
  return (
    <>
      <div class="mb-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.people')}</Title>
        <Search label={ot('op.searchPeople')} text={text} found={setText} shortest={SHORTEST_SEARCH} />
      </div>
      {text.length >= SHORTEST_SEARCH ? <Found key={text} text={text} /> : <p class="note">{ot('op.searchFirst')}</p>}
    </>
  );
}

function Found({ text }: { text: string }) {
  const { page, reload } = useLoad(`people ${text}`, async (signal) => (await request(SearchUsers, { text }, signal)).searchUsers);
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return <Broken fault={page.value.fault} again={reload} />;
    case 'missing':
      return <p class="note">{ot('op.none')}</p>;
    case 'ready':
      if (!page.value.data.length) return <p class="note">{ot('op.none')}</p>;
      return (
        <ul class="grid gap-2">
          {page.value.data.map(({ id, account, displayName, role }) => (
            <li key={id} class="card flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
              <span class="grow font-semibold">{displayName}</span>
              <Link class="link text-sm" href={`/operate/orders?q=${encodeURIComponent(account ?? displayName)}`}>
                {account ?? displayName}
              </Link>
              <span class="chip text-soft">{ot(`op.role.${role}`)}</span>
            </li>
          ))}
        </ul>
      );
  }
}
