import type { ComponentChildren } from 'preact';
import { usePaged, type Connection } from '../api/paged';
import { REFRESH_MS, useRefresh } from '../api/refresh';
import { FaultMessage, Loading, More, Stale } from '../ui/bits';
import { ot } from './texts';

interface Props<T> {
  /** Names the list; another key loads another list. */
  name: string;
  ask: (after: string | null, signal: AbortSignal) => Promise<Connection<T> | null>;
  /** Whether the list is read again and again. Not for searches of people, which are logged. */
  live?: boolean;
  children: (nodes: T[], reload: () => void) => ComponentChildren;
}

/** A list that is loaded page by page. */
export function Paged<T>({ name, ask, live, children }: Props<T>) {
  const { page, reload, next, busy } = usePaged(name, ask);
  useRefresh(reload, live ? REFRESH_MS : Infinity);
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return <FaultMessage fault={page.value.fault} again={reload} />;
    case 'missing':
      return null;
    case 'ready': {
      const { data, fault } = page.value;
      return (
        <>
          <Stale fault={fault} again={reload} />
          {data.nodes.length ? children(data.nodes, reload) : <p class="note">{ot('op.none')}</p>}
          {data.more && <More next={next} busy={busy} />}
        </>
      );
    }
  }
}
