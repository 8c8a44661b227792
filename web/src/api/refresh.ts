import { useEffect } from 'preact/hooks';

/** The usual time between two reads of a page whose objects others change, in ms. */
export const REFRESH_MS = 10_000;

/** Reads a page again, one read after the other, while it is visible. For states that no subscription pushes. */
export function useRefresh(reload: () => Promise<void>, everyMs = REFRESH_MS): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let stopped = false;
    const wait = (): void => {
      timer = setTimeout(async () => {
        if (!document.hidden) await reload();
        if (!stopped) wait();
      }, everyMs);
    };
    if (everyMs < Infinity) wait();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [reload, everyMs]);
}
