/** Where the focus goes when its place is gone. */
import { useEffect, useRef } from 'preact/hooks';

/** Longest wait for the heading of a page that is on its way, in ms. */
const HEADING_MS = 5_000;

/** Moves the focus to the heading of a page that was gone to, as soon as it is there. */
export function useFocus(where: string): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    const main = document.querySelector<HTMLElement>('main')!;
    main.focus({ preventScroll: true });
    const found = (): boolean => {
      const heading = main.querySelector<HTMLElement>('h1');
      if (heading && document.activeElement === main) heading.focus({ preventScroll: true });
      return heading !== null;
    };
    if (found()) return;
    const watch = new MutationObserver(() => found() && watch.disconnect());
    watch.observe(main, { childList: true, subtree: true });
    const enough = setTimeout(() => watch.disconnect(), HEADING_MS);
    return () => {
      watch.disconnect();
      clearTimeout(enough);
    };
  }, [where]);
}

/**
 * Brings the focus back when what had it is gone: a button goes with the act that
 * it stood for, often long after its sheet. It goes to what comes next, which the
 * page marks with data-next, else to the heading.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    const main = document.querySelector<HTMLElement>('main')!;
    let last: EventTarget | null = null;
    addEventListener('focusin', ({ target }) => (last = target));
    addEventListener('pointerdown', () => (last = null)); // what is pressed takes the focus, or nothing is to have it
    new MutationObserver(() => {
      if (!(last instanceof Element) || last.isConnected || document.activeElement !== document.body) return;
      (main.querySelector<HTMLElement>('[data-next]') ?? main.querySelector('h1'))?.focus({ preventScroll: true });
    }).observe(main, { childList: true, subtree: true });
  }, []);
}
