import { expect, test } from 'vitest';
import { groupMarks, kindOf } from '../src/operator/marks';

const at = (...xs: number[]) => xs.map((x) => ({ x }));

test('marks that are apart have icons of their own, and marks that are close share one', () => {
  expect(groupMarks(at(10, 100, 110, 300), 30)).toEqual([
    { x: 10, marks: at(10) },
    { x: 105, marks: at(100, 110) },
    { x: 300, marks: at(300) },
  ]);
});

test.each([1, 7, 13, 29, 31])('no two icons lie over each other, and no mark is lost (a mark each %i px)', (step) => {
  const marks = at(...Array.from({ length: 40 }, (_, i) => i * step + (i % 3) * 5)).reverse();
  const groups = groupMarks(marks, 30);
  expect(groups.flatMap((group) => group.marks)).toHaveLength(40);
  groups.forEach(({ x }, i) => i && expect(x - groups[i - 1]!.x).toBeGreaterThanOrEqual(30));
});

test('each kind of action has an icon', () => {
  expect(['OPEN', 'RESUME', 'PAUSE', 'ADJUST_STOCK', 'END', 'SET_SWITCHES'].map(kindOf)).toEqual(['open', 'open', 'pause', 'stock', 'end', 'other']);
});
