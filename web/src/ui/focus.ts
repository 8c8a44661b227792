/** Where the focus goes when its place is gone. */
import { useEffect, useRef } from 'preact/hooks';

/** Longest wait for the heading of a page that is on its way, in ms. */
const HEADING_MS = 5_000;

const address = (): string => location.pathname + location.search;

/** How far down each page was when it was left. */
const places = new Map<string, number>();

/** Where the page was that the back or forward button has just brought. */
let back: { where: string; top: number } | null = null;

addEventListener('scroll', () => places.set(address(), scrollY), { passive: true });
// Read at once: what the browser scrolls by itself now, it scrolls on the page of before.
addEventListener('popstate', () => (back = { where: location.pathname, top: places.get(address()) ?? 0 }));

/** Moves the focus to the heading of a page that was gone to, as soon as it is there; a page that was gone back to stands where it stood. */
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
