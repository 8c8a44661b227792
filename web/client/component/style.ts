let sheet: CSSStyleSheet | undefined;

/** The style of the element, made once. It needs no `style-src` of the page's Content-Security-Policy. */
export function css(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
  }
  return sheet;
}

const text = `
:host { display: block; --accent: var(--seckill-accent, #b3261e); --on-accent: var(--seckill-on-accent, #fff); --line: var(--seckill-border, #8885);
  color: var(--seckill-text, inherit); background: var(--seckill-background, transparent); font: var(--seckill-font, inherit); }
:host([hidden]) { display: none }
section { display: grid; gap: .75rem; max-width: 30rem; padding: 1rem; border: 1px solid var(--line); border-radius: var(--seckill-radius, .75rem) }
section > div:empty { display: none }
section > div, form { display: grid; gap: .5rem; justify-items: start }
h2, p { margin: 0 }
h2 { font-size: 1.25em }
img { max-width: 100%; max-height: 14rem; border-radius: .5rem }
[part=price] { display: flex; gap: .5rem; align-items: baseline; font-size: 1.2em }
[part=timer] { font-size: 1.75em; font-variant-numeric: tabular-nums }
[part=problem], .problem { color: var(--seckill-problem, #b3261e); font-weight: 600 }
label { display: grid; gap: .25rem; width: 100% }
input, select, button, a.main { font: inherit; padding: .6rem .8rem; min-height: 2.75rem; box-sizing: border-box; border-radius: .5rem; border: 1px solid var(--line) }
input, select { color: inherit; background: transparent; max-width: 100% }
input { width: 100%; border-color: #888 }
button { cursor: pointer; color: inherit; background: transparent }
.main { color: var(--on-accent); background: var(--accent); border-color: var(--accent); text-decoration: none; font-weight: 600; width: 100%; text-align: center }
a { color: inherit; min-height: 1.5rem }
.link { border: 0; padding-inline: 0; text-decoration: underline }
[aria-disabled=true] { opacity: .7; cursor: default }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
progress { width: 100%; accent-color: var(--accent) }
svg { width: 13rem; background: #fff }
canvas { max-width: 100%; background: #fff; border-radius: .5rem }
form { width: 100% }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
@media (prefers-reduced-motion: no-preference) { .main { transition: filter .15s } .main:hover { filter: brightness(.92) } }
`;
