import type { VNode } from 'preact';

/** Emphasis within a line: **strong** and *soft*. Everything else stays text. */
function inline(text: string): (VNode | string)[] {
  return text.split(/(\*\*[^*]+\*\*|\*[^*]+\*)/).map((piece) => {
    if (piece.startsWith('**')) return <strong>{piece.slice(2, -2)}</strong>;
    if (piece.startsWith('*') && piece.length > 2) return <em>{piece.slice(1, -1)}</em>;
    return piece;
  });
}

/**
 * The part of Markdown that rules and descriptions use: paragraphs, lists,
 * headings, emphasis. Nothing in the text can become a tag or an address.
 */
export function Markdown({ text }: { text: string }) {
  const blocks = text.trim().split(/\n\s*\n/).filter(Boolean);
  return (
    <div class="prose">
      {blocks.map((block) => {
        const lines = block.split('\n');
        if (lines.every((line) => /^\s*([-*]|\d+\.)\s/.test(line))) {
          return (
            <ul>
              {lines.map((line) => (
                <li>{inline(line.replace(/^\s*([-*]|\d+\.)\s+/, ''))}</li>
              ))}
            </ul>
          );
        }
        const heading = /^#+\s+(.*)$/.exec(block);
        return heading ? <p class="font-semibold">{inline(heading[1]!)}</p> : <p>{inline(lines.join(' '))}</p>;
      })}
    </div>
  );
}
