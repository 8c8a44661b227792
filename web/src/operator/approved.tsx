/** What was approved of a sale, beside what buyers see now. */
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { Approved as ApprovedDoc } from '../documents/approved';
import { DateTime } from '../ui/bits';
import { fieldName, readValue, Value, type Names } from './log';
import { ot } from './texts';

type Approval = NonNullable<NonNullable<ResultOf<typeof ApprovedDoc>['sale']>['approved']>;
type Term = Approval['terms'][number];

/** Nothing where no approval is known. What was changed since then is shown; the rest opens. */
export function Approved({ id, names }: { id: string; names: Names }) {
  const { page, reload } = useLoad(`approved ${id}`, async (signal) => (await request(ApprovedDoc, { id }, signal)).sale?.approved ?? null);
  useRefresh(reload);
  if (page.value.state !== 'ready') return null;
  const { at, by, terms } = page.value.data;
  const changed = terms.filter((term) => term.changed);
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{ot('op.approved')}</h2>
      <p class="text-sm text-soft">
        <DateTime at={at} /> · <bdi>{by?.displayName ?? ot('op.byClock')}</bdi>
      </p>
      {changed.length ? <Terms terms={changed} names={names} /> : <p>{ot('op.approved.same')}</p>}
      <details>
        <summary class="link w-fit">{ot('op.approved.all')}</summary>
        <Terms terms={terms} names={names} />
      </details>
    </section>
  );
}

function Terms({ terms, names }: { terms: readonly Term[]; names: Names }) {
  return (
    <div class="overflow-x-auto" tabIndex={0} role="group" aria-label={ot('op.approved')}>
      <table class="w-full text-left text-sm">
        <thead>
          <tr class="text-soft">
            <th scope="col" class="py-1 pr-3 font-normal">{ot('op.approved.field')}</th>
            <th scope="col" class="py-1 pr-3 font-normal">{ot('op.approved.then')}</th>
            <th scope="col" class="py-1 font-normal">{ot('op.approved.now')}</th>
          </tr>
        </thead>
        <tbody>
          {terms.map((term, at) => (
            <tr key={at} class="border-t border-line align-top">
              <th scope="row" class="py-1 pr-3 font-normal">
                {term.goods && (
                  <>
                    <bdi>{term.goods.name}</bdi> ·{' '}
                  </>
                )}
                {fieldName(term.name)}
              </th>
              <td class="min-w-32 py-1 pr-3 break-words whitespace-pre-line">
                <Value name={term.name} value={readValue(term.kind, term.approved)} names={names} />
              </td>
              <td class={`min-w-32 py-1 break-words whitespace-pre-line ${term.changed ? 'font-semibold text-warn' : ''}`}>
                <Value name={term.name} value={readValue(term.kind, term.now)} names={names} />
                {term.changed && <span class="sr-only"> ({ot('op.approved.changed')})</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
