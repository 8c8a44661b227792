import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { useLoad, type Loaded } from './load';

/** A connection as the API answers it. */
export interface Connection<T> {
  edges: { node: T }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

/** What a list has loaded. */
export interface List<T> {
  nodes: T[];
  /** Whether there is more to load. */
  more: boolean;
}

/** How many pages of each list were loaded, so that going back shows as many. */
const counts = new Map<string, number>();

/** A list that is loaded page by page; loaded pages stay visible while `next` loads more. The name is the key of the list. */
export function usePaged<T>(
  name: string,
  ask: (after: string | null, signal: AbortSignal) => Promise<Connection<T> | null | undefined>,
): Loaded<List<T>> & { next: () => void; busy: boolean } {
  const busy = useMemo(() => signal(false), [name]);
  const { page, reload } = useLoad<List<T>>(name, async (stop) => {
    const nodes: T[] = [];
    let after: string | null = null;
    let more = true;
    for (let n = 0; more && n < (counts.get(name) ?? 1); n++) {
      const found: Connection<T> | null | undefined = await ask(after, stop);
      for (const { node } of found?.edges ?? []) nodes.push(node);
      after = found?.pageInfo.endCursor ?? null;
      more = found?.pageInfo.hasNextPage ?? false;
    }
    return { nodes, more };
  });
  const next = (): void => {
    if (busy.peek()) return;
    busy.value = true;
    counts.set(name, (counts.get(name) ?? 1) + 1);
    void reload().finally(() => (busy.value = false));
  };
  return { page, reload, next, busy: busy.value };
}
