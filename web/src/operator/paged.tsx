import type { ComponentChildren } from 'preact';
import { usePaged, type Connection } from '../api/paged';
import { REFRESH_MS, useRefresh } from '../api/refresh';
import { More, Stale, Unready } from '../ui/bits';
import { ot, type OpKey } from './texts';

interface Source<T> {
  /** Names the list; another key loads another list. */
  name: string;
  ask: (after: string | null, signal: AbortSignal) => Promise<Connection<T> | null>;
  /** Whether the list is read again and again. Not for searches of people, which are logged. */
  live?: boolean;
  /** The words of an empty list. */
  none?: OpKey;
}

interface Props<T> extends Source<T> {
  children: (nodes: T[], reload: () => void) => ComponentChildren;
}

/** A list of rows that is loaded page by page. */
export function Rows<T>({ row, ...source }: Source<T> & { row: (node: T) => ComponentChildren }) {
  return <Paged {...source}>{(nodes) => <ul class="grid grid-cols-1 gap-2">{nodes.map(row)}</ul>}</Paged>;
}

/** A list that is loaded page by page. */
export function Paged<T>({ name, ask, live, none = 'op.none', children }: Props<T>) {
  const { page, reload, next, busy } = usePaged(name, ask);
  useRefresh(reload, live ? REFRESH_MS : Infinity);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={null} />;
  const { data, fault } = page.value;
  return (
    <>
      <Stale fault={fault} again={reload} />
      {data.nodes.length ? children(data.nodes, reload) : <p class="note">{ot(none)}</p>}
      {data.more && <More next={next} busy={busy} />}
    </>
  );
}
