/** Where the names of a chart's marks go. */

/** A name beside its line. */
export interface Placed {
  /** Left edge. */
  x: number;
  row: number;
}

/** Distance between a name and its line or another name, in the unit of the widths. */
const GAP = 4;

/**
 * Places names beside their lines, in the first row in which they lie over no other name; null where there is
 * none. Names are at the right of their lines, or at the left where they would leave the chart.
 */
export function placeNames(marks: readonly { x: number; width: number }[], bounds: { left: number; right: number }, rows: number): (Placed | null)[] {
  const taken: [from: number, to: number][][] = Array.from({ length: rows }, () => []);
  return marks.map(({ x: line, width }) => {
    const sides = [line + GAP, line - GAP - width].filter((x) => x >= bounds.left && x + width <= bounds.right);
    for (const x of sides) {
      const row = taken.findIndex((names) => names.every(([from, to]) => x >= to + GAP || x + width + GAP <= from));
      if (row < 0) continue;
      taken[row]!.push([x, x + width]);
      return { x, row };
    }
    return null;
  });
}
