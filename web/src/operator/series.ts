/** The seconds of the plots, merged from frames and responses. */
import { REACH_S, type Point } from './figures';

/** Merges points into a series: one per second, in order, none older than the reach. Given points replace known ones. */
export function merge(series: Point[], points: Point[]): Point[] {
  const seconds = new Map([...series, ...points].map((point) => [point.at, point]));
  const sorted = [...seconds.values()].sort((a, b) => a.at - b.at);
  const newest = sorted.at(-1)?.at ?? 0;
  return sorted.filter(({ at }) => at > newest - REACH_S);
}

/** Whether seconds between the first and the last are missing. */
export function hasGaps(series: Point[]): boolean {
  return series.some(({ at }, i) => i > 0 && at - series[i - 1]!.at > 1);
}
