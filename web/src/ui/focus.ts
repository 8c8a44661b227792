/** Focus management across pages and removed elements. */
import { useEffect, useRef } from 'preact/hooks';

/** Timeout of waiting for the heading of a page, in ms. */
const HEADING_MS = 60_000;

const address = (): string => location.pathname + location.search;

/** Scroll position of each page when it was left. */
const places = new Map<string, number>();

/** The page and position of the last back or forward navigation. */
let back: { where: string; top: number } | null = null;

addEventListener('scroll', () => places.set(address(), scrollY), { passive: true });
// Read at once: the browser still scrolls the previous page.
addEventListener('popstate', () => (back = { where: location.pathname, top: places.get(address()) ?? 0 }));

/** Moves the focus to the heading of a new page as soon as it is rendered; going back restores the scroll position. */
export function useFocus(where: string): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, back?.where === where ? back.top : 0);
    back = null;
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
 * Restores the focus when the focused element was removed, often long after its
 * dialog was closed: to the next step, which the page marks with data-next,
 * else to the heading.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    const main = document.querySelector<HTMLElement>('main')!;
    let last: EventTarget | null = null;
    addEventListener('focusin', ({ target }) => (last = target));
    addEventListener('pointerdown', () => (last = null)); // the pressed element takes the focus by itself
    new MutationObserver(() => {
      if (!(last instanceof Element) || last.isConnected || document.activeElement !== document.body) return;
      (main.querySelector<HTMLElement>('[data-next]') ?? main.querySelector('h1'))?.focus({ preventScroll: true });
    }).observe(main, { childList: true, subtree: true });
  }, []);
}
