import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { backoff } from '@seckill/client/backoff';
import { toFault, type Fault } from '@seckill/client/fault';
import { currentUser } from './session';
import { lang } from '../i18n/lang';
import { onWake } from './wake';

/** The data of a page. */
export type LoadState<T> =
  | { state: 'loading' }
  | { state: 'ready'; data: T; fault: Fault | null }
  | { state: 'missing' }
  | { state: 'failed'; fault: Fault };

/** A loaded page with its reload. */
export interface Loaded<T> {
  page: ReadonlySignal<LoadState<T>>;
  /** Loads again and aborts a load under way. Resolves when the load has ended. */
  reload: () => Promise<void>;
}

/** Last responses by key, so that going back shows data at once. */
const cache = new Map<string, unknown>();

/**
 * Loads data for a page: at once, when the key, the user or the language
 * changes, and when the browser wakes up. Old data stays visible while new data loads,
 * and when that fails; transient faults are retried. Null means not found. With `fresh`
 * the page does not begin with an earlier response: a form would save its old values.
 */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T | null>, fresh = false): Loaded<T> {
  const cacheKey = `${currentUser.value?.id ?? ''}|${key}`;
  const loader = useMemo(() => {
    const page = signal<LoadState<T>>(
      cache.has(cacheKey) && !fresh ? { state: 'ready', data: cache.get(cacheKey) as T, fault: null } : { state: 'loading' },
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
          if (data !== null) cache.set(cacheKey, data);
          tries = 0;
          page.value = data === null ? { state: 'missing' } : { state: 'ready', data, fault: null };
        },
        (thrown: unknown) => {
          if (mine.signal.aborted) return;
          const fault = toFault(thrown);
          const before = page.peek();
          page.value = before.state === 'ready' ? { ...before, fault } : { state: 'failed', fault };
          if (fault.transient) again = setTimeout(() => void reload(), Math.max(fault.retryAfterMs, backoff(++tries)));
        },
      );
    };
    return { page, reload, stop };
  }, [cacheKey]);
  useEffect(() => {
    void loader.reload();
    const quiet = onWake(() => void loader.reload());
    return () => {
      quiet();
      loader.stop();
    };
  }, [loader, lang.value]);
  return loader;
}
