import { expect, test } from 'vitest';
import { placeNames } from '../src/operator/marks';

const chart = { left: 0, right: 300 };

test('names that are apart share a row, names that are close take the next one', () => {
  expect(placeNames([{ x: 10, width: 60 }, { x: 100, width: 60 }, { x: 110, width: 60 }], chart, 3)).toEqual([
    { x: 14, row: 0 },
    { x: 104, row: 0 },
    { x: 114, row: 1 },
  ]);
});

test('a name that would leave the chart is at the left of its line', () => {
  expect(placeNames([{ x: 280, width: 60 }], chart, 3)).toEqual([{ x: 216, row: 0 }]);
  expect(placeNames([{ x: 10, width: 400 }], chart, 3)).toEqual([null]);
});

test('a crowd of marks shows the names for which there is room, and none over another', () => {
  const marks = Array.from({ length: 40 }, (_, i) => ({ x: i * 7, width: 30 + (i % 5) * 15 }));
  const placed = placeNames(marks, chart, 3).flatMap((name, i) => (name ? [{ ...name, to: name.x + marks[i]!.width }] : []));
  expect(placed.length).toBeGreaterThan(5);
  for (const a of placed) for (const b of placed) if (a !== b && a.row === b.row) expect(a.to <= b.x || b.to <= a.x, JSON.stringify([a, b])).toBe(true);
});
