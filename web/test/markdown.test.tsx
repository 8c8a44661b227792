import { render } from 'preact';
import { expect, test } from 'vitest';
import { Markdown } from '../src/pages/markdown';

/** The HTML of a text, without what is the same everywhere. */
function html(text: string): string {
  render(null, document.body);
  render(<Markdown text={text} />, document.body);
  return document.querySelector('.prose')!.innerHTML.replaceAll(/ (dir|class)="[^"]*"/g, '');
}

test('numbered lists keep their numbers, also a first one that is not 1', () => {
  expect(html('1. one\n2. two')).toBe('<ol start="1"><li>one</li><li>two</li></ol>');
  expect(html('3. three\n4. four')).toBe('<ol start="3"><li>three</li><li>four</li></ol>');
  expect(html('1) one\n2) two')).toBe('<ol start="1"><li>one</li><li>two</li></ol>');
});

test('a list may follow a line directly, and have lists within it', () => {
  expect(html('Rules:\n- one\n- two')).toBe('<p>Rules:</p><ul><li>one</li><li>two</li></ul>');
  expect(html('规则：\n1. 一\n2. 二')).toBe('<p>规则：</p><ol start="1"><li>一</li><li>二</li></ol>');
  expect(html('- one\n  1. a\n  2. b\n- two')).toBe('<ul><li>one<ol start="1"><li>a</li><li>b</li></ol></li><li>two</li></ul>');
});

test('headings, emphasis, quotations, rules and code are elements', () => {
  expect(html('# Title\ntext')).toBe('<h3>Title</h3><p>text</p>');
  expect(html('Title\n=====')).toBe('<h3>Title</h3>');
  expect(html('**strong** *soft* __strong__ `a*b*`')).toBe('<p><strong>strong</strong> <em>soft</em> <strong>strong</strong> <code>a*b*</code></p>');
  expect(html('> said\n\n---')).toBe('<blockquote><p>said</p></blockquote><hr>');
  expect(html('2 \\* 3 \\# 4')).toBe('<p>2 * 3 # 4</p>');
});

test('nothing becomes a tag, an address or a picture', () => {
  for (const text of ['<img src=x onerror=alert(1)>', '<script>alert(1)</script>', 'a <b>b</b>', '[x](javascript:alert(1))', '![x](https://example.com/a.png)', 'https://example.com', '| a | b |\n|---|---|\n| 1 | 2 |', '[x]: https://example.com "y"\n\n[x]']) {
    html(text);
    expect([...document.querySelectorAll('.prose *')].map(({ localName }) => localName).filter((name) => name !== 'p'), text).toEqual([]);
  }
  html('Terms: [here](https://example.com/terms)');
  expect(document.querySelector('.prose')!.textContent).toBe('Terms: [here](https://example.com/terms)');
});

test('a text of any shape is shown', () => {
  for (const text of ['', '   ', '>'.repeat(10_000), '- '.repeat(5_000), '*'.repeat(10_000), '['.repeat(10_000), '`'.repeat(9_999), '1. '.repeat(3_000)]) {
    html(text);
    expect(document.querySelectorAll('.prose')).toHaveLength(1);
  }
});
