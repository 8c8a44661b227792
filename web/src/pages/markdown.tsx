/**
 * Markdown in rules and descriptions. The parser is marked; of what it finds, paragraphs, headings, lists, quotations, emphasis and code become
 * elements, and everything else stays the text that was typed. No HTML is made, so nothing in the text can become a tag, a picture or an
 * address to click.
 */
import { Lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';

/** Deeper lists and quotations stay text: a text of nothing but `>` must not exhaust the stack. */
const MAX_DEPTH = 8;

function inline(tokens: Token[] | undefined, otherwise: string): ComponentChildren {
  return tokens ? tokens.map(inlineOf) : otherwise;
}

function inlineOf(token: Token): ComponentChildren {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens, token.raw)}</strong>;
    case 'em':
      return <em>{inline(token.tokens, token.raw)}</em>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'text':
      return inline((token as Tokens.Text).tokens, token.raw);
    default:
      return token.raw;
  }
}

function Blocks({ tokens, depth }: { tokens: Token[]; depth: number }) {
  return <>{tokens.map((token) => blockOf(token, depth))}</>;
}

function blockOf(token: Token, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return <p dir="auto">{token.raw}</p>;
  switch (token.type) {
    case 'space':
      return null;
    case 'heading':
      return (
        <h3 dir="auto" class="font-semibold">
          {inline(token.tokens, token.raw)}
        </h3>
      );
    case 'text': // of a list item
      return inline((token as Tokens.Text).tokens, token.raw);
    case 'list': {
      const { ordered, start, items } = token as Tokens.List;
      const rows = items.map((item) => (
        <li dir="auto">
          <Blocks tokens={item.tokens} depth={depth + 1} />
        </li>
      ));
      return ordered ? <ol start={Number(start)}>{rows}</ol> : <ul>{rows}</ul>;
    }
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={token.tokens ?? []} depth={depth + 1} />
        </blockquote>
      );
    case 'hr':
      return <hr />;
    case 'paragraph':
      return <p dir="auto">{inline(token.tokens, token.raw)}</p>;
    default:
      return (
        <p dir="auto" class="whitespace-pre-wrap">
          {token.raw.trim()}
        </p>
      );
  }
}

/** The blocks of a text; null where it is nested so deeply that it cannot be parsed. */
function parse(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return null;
  }
}

/** A text in Markdown. */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => parse(text), [text]);
  return <div class="prose">{tokens ? <Blocks tokens={tokens} depth={0} /> : <p dir="auto">{text}</p>}</div>;
}
