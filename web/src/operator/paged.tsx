import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLoad } from '../api/load';
import { t } from '../i18n/text';
import { Broken, Loading, Stale } from '../ui/bits';
import { ot } from './texts';

/** A connection as the API answers it. */
export interface Connection<T> {
  edges: { node: T }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

interface Props<T> {
  /** Names the list; another key loads another list. */
  name: string;
  ask: (after: string | null, signal: AbortSignal) => Promise<Connection<T> | null>;
  children: (nodes: T[], reload: () => void) => ComponentChildren;
}

/** A list that is loaded page by page. */
export function Paged<T>({ name, ask, children }: Props<T>) {
  const pages = useSignal(1);
  const { page, reload } = useLoad(`${name} ${pages.value}`, async (signal) => {
    const nodes: T[] = [];
    let after: string | null = null;
    let more = false;
    for (let n = 0; n < pages.value; n++) {
      const found: Connection<T> | null = await ask(after, signal);
      for (const { node } of found?.edges ?? []) nodes.push(node);
      after = found?.pageInfo.endCursor ?? null;
      more = found?.pageInfo.hasNextPage ?? false;
      if (!more) break;
    }
    return { nodes, more };
  });
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return <Broken fault={page.value.fault} again={reload} />;
    case 'missing':
      return null;
    case 'ready': {
      const { data, fault } = page.value;
      return (
        <>
          <Stale fault={fault} again={reload} />
          {data.nodes.length ? children(data.nodes, reload) : <p class="note">{ot('op.none')}</p>}
          {data.more && (
            <button class="btn mx-auto mt-4 flex" onClick={() => pages.value++}>
              {t('sales.more')}
            </button>
          )}
        </>
      );
    }
  }
}
