/** Timeout of waiting for the element of the URL fragment, in ms: its data has to load. */
const TIMEOUT_MS = 60_000;

/** Scrolls to the element of the URL fragment as soon as it exists. Browsers look for it only while the document loads. */
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
  setTimeout(() => seen.disconnect(), TIMEOUT_MS);
}
