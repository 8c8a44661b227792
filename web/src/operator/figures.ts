import type { ResultOf } from '@seckill/client/operation';
import type { FigureParts } from '../documents/figures';

/** The figures of a sale at one moment. */
export type Figures = ResultOf<typeof FigureParts>;

/** One second of a sale, for the plots. */
export interface Point {
  /** Epoch in whole seconds. */
  at: number;
  requests: number;
  orders: number;
  left: number;
}

/** How far back the plots reach, in seconds. */
export const REACH_S = 300;

/** Whether the units add up, here and in the stores. */
export function unitsAddUp(figures: Figures): boolean {
  return figures.conserved && figures.remainingUnits + figures.pendingUnits + figures.paidUnits === figures.totalUnits;
}

/** Adds a second to the series: one point for each second, in order, none older than the reach. */
export function extend(series: Point[], figures: Figures): Point[] {
  const point: Point = {
    at: Math.floor(Date.parse(figures.at) / 1000),
    requests: figures.requestsPerSecond,
    orders: figures.ordersPerSecond,
    left: figures.remainingUnits,
  };
  const last = series.at(-1);
  if (last && point.at < last.at) return series;
  const kept = last?.at === point.at ? series.slice(0, -1) : series;
  return [...kept.filter(({ at }) => at > point.at - REACH_S), point];
}
