import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { backoff } from './connection';
import { toFault, type Fault } from './fault';
import { person } from './session';
import { lang } from '../i18n/lang';
import { onWake } from './wake';

/** What a page has of its data. */
export type Page<T> =
  | { state: 'loading' }
  | { state: 'ready'; data: T; fault: Fault | null }
  | { state: 'missing' }
  | { state: 'failed'; fault: Fault };

/** A loaded page and the way to load it again. */
export interface Loaded<T> {
  page: ReadonlySignal<Page<T>>;
  /** Loads again; one load that is under way is given up for it. Resolves when it has come to its end. */
  reload: () => Promise<void>;
}

/** Last answers by key, so that going back shows something at once. */
const cache = new Map<string, unknown>();

/**
 * Loads data for a page: at once, when the key, the person or the language
 * changes, and when the browser wakes up. Old data stays in sight while new data is on its way,
 * and when it does not come; what passes is tried again. Null means that there is nothing of that name.
 */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T | null>): Loaded<T> {
  const who = `${person.value?.id ?? ''}|${key}`;
  const held = useMemo(() => {
    const page = signal<Page<T>>(
      cache.has(who) ? { state: 'ready', data: cache.get(who) as T, fault: null } : { state: 'loading' },
    );
    let running = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    let tries = 0;
    const stop = (): void => {
      running.abort();
      clearTimeout(again);
    };
    const reload = (): Promise<void> => {
      stop();
      const mine = (running = new AbortController());
      return load(mine.signal).then(
        (data) => {
          if (mine.signal.aborted) return;
          if (data !== null) cache.set(who, data);
          tries = 0;
          page.value = data === null ? { state: 'missing' } : { state: 'ready', data, fault: null };
        },
        (thrown: unknown) => {
          if (mine.signal.aborted) return;
          const fault = toFault(thrown);
          const before = page.peek();
          page.value = before.state === 'ready' ? { ...before, fault } : { state: 'failed', fault };
          if (fault.passing) again = setTimeout(() => void reload(), Math.max(fault.retryAfterMs, backoff(++tries)));
        },
      );
    };
    return { page, reload, stop };
  }, [who]);
  useEffect(() => {
    void held.reload();
    const quiet = onWake(() => void held.reload());
    return () => {
      quiet();
      held.stop();
    };
  }, [held, lang.value]);
  return held;
}
