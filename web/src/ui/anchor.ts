/** How long an element that the address names may take to appear, in ms: its data has to load. */
const PATIENCE_MS = 60_000;

/** Scrolls to the element that the fragment of the address names, once it is there. Browsers look for it only while the document loads. */
export function followAnchor(): void {
  const name = location.hash.slice(1);
  if (!name) return;
  const found = (): boolean => {
    const element = document.getElementById(name);
    element?.scrollIntoView();
    return element !== null;
  };
  if (found()) return;
  const seen = new MutationObserver(() => found() && seen.disconnect());
  seen.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => seen.disconnect(), PATIENCE_MS);
}
