/** The marks of a chart: which icon they have, and which share one. */

/** What an icon stands for. */
export type MarkKind = 'open' | 'pause' | 'stock' | 'end' | 'other';

const kinds: Record<string, MarkKind> = { OPEN: 'open', RESUME: 'open', PAUSE: 'pause', ADJUST_STOCK: 'stock', END: 'end', CANCEL: 'end' };

/** The icon of an action of the log. */
export const kindOf = (action: string): MarkKind => kinds[action] ?? 'other';

/** Marks that are shown as one icon, at the middle of their lines. */
export interface Group<T> {
  x: number;
  marks: T[];
}

/** Groups marks whose icons, of a width, would lie over each other. No two groups are closer than that width. */
export function groupMarks<T extends { x: number }>(marks: readonly T[], width: number): Group<T>[] {
  const middle = (group: readonly T[]): number => (group[0]!.x + group.at(-1)!.x) / 2;
  const groups: T[][] = [];
  for (const mark of [...marks].sort((a, b) => a.x - b.x)) {
    let group = [mark];
    while (groups.length && middle(group) - middle(groups.at(-1)!) < width) group = [...groups.pop()!, ...group];
    groups.push(group);
  }
  return groups.map((group) => ({ x: middle(group), marks: group }));
}
