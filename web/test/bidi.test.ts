/** Texts that operators and buyers typed may be written from right to left: each is isolated from what is around it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { fill, isolate } from '../src/i18n/text';

/** Fields of the API with such a text. */
const FIELDS = new Set(['name', 'title', 'description', 'displayName', 'note', 'notice', 'reason', 'seller', 'carrier', 'street', 'city', 'region', 'comment', 'rules', 'details', 'decision']);
/** Objects whose fields have these names and are texts of our own. */
const OWN = new Set(['ask', 'props', 'slot']);

const root = join(import.meta.dirname, '../src');

/** The field that an expression shows; null where it shows none of them. */
function fieldOf(shown: ts.Expression): string | null {
  if (ts.isParenthesizedExpression(shown) || ts.isNonNullExpression(shown)) return fieldOf(shown.expression);
  if (ts.isBinaryExpression(shown)) return fieldOf(shown.right) ?? (shown.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken ? null : fieldOf(shown.left));
  if (ts.isConditionalExpression(shown)) return fieldOf(shown.whenTrue) ?? fieldOf(shown.whenFalse);
  if (ts.isElementAccessExpression(shown)) return shown.expression.getText() === 'names' ? shown.getText() : null;
  if (ts.isIdentifier(shown)) return ['displayName', 'description'].includes(shown.text) ? shown.text : null;
  return ts.isPropertyAccessExpression(shown) && FIELDS.has(shown.name.text) && !OWN.has(shown.expression.getText()) ? shown.getText() : null;
}

/** The field that is among the texts of a list. */
function partOf(list: ts.Expression): string | null {
  if (ts.isArrayLiteralExpression(list)) return list.elements.map(fieldOf).find(Boolean) ?? null;
  if (!ts.isCallExpression(list) || !ts.isPropertyAccessExpression(list.expression)) return null;
  const [each] = list.arguments;
  const shown = list.expression.name.text === 'map' && each && ts.isArrowFunction(each) && !ts.isBlock(each.body) && fieldOf(each.body);
  return shown || partOf(list.expression.expression);
}

/** The field that a call joins with others. */
const joined = (call: ts.Node): string | null =>
  ts.isCallExpression(call) && ts.isPropertyAccessExpression(call.expression) && call.expression.name.text === 'join' ? partOf(call.expression.expression) : null;

/** Whether an element isolates its text. */
const isolates = (element: ts.Node): boolean =>
  ts.isJsxElement(element) &&
  (element.openingElement.tagName.getText() === 'bdi' || element.openingElement.attributes.properties.some((each) => each.name?.getText() === 'dir'));

/** Places of a file that show such a text without isolation. */
function mixed(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const note = (node: ts.Node, field: string): void => void found.push(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1} ${field}`);
  const visit = (node: ts.Node): void => {
    const child = ts.isJsxExpression(node) && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent)) ? node.expression : undefined;
    const field = child && fieldOf(child);
    if (field && !isolates(node.parent)) note(node, field);
    const part = joined(node);
    if (part) note(node, part);
    if (ts.isTemplateExpression(node)) {
      for (const { expression } of node.templateSpans) {
        const part = fieldOf(expression);
        if (part) note(node, part);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test('every page isolates the texts that people typed: in bdi, in an element with dir, or by isolate()', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.tsx'));
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap(mixed)).toEqual([]);
});

test('a text within another one is isolated where it is written from right to left, and else left alone', () => {
  const phone = 'هاتف ذكي 5G (أسود)';
  expect(fill('Buy {item} · ¥9', { item: phone })).toBe(`Buy \u2068${phone}\u2069 · ¥9`);
  expect(isolate('Phone 5G (black)')).toBe('Phone 5G (black)');
  expect(isolate('טלפון')).toBe('\u2068טלפון\u2069');
});
