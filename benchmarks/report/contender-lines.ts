import type { Entry, ScenarioResult } from "../figures/result.ts";
import { colourOf, lineSeries } from "./chart-theme.ts";
import { holdfastLast, isHoldfast } from "./entries.ts";
import { short } from "./numbers.ts";

// A line for each contender over several scenarios that differ in one thing, such as the number of processes.

/** One of these scenarios, and where it stands on the horizontal axis. */
export interface Stop {
  readonly at: number;
  readonly result: ScenarioResult;
}

export interface Line {
  readonly entry: Entry;
  /** [place on the horizontal axis, value] */
  readonly points: readonly [number, number][];
}

/** Each contender once that has a value anywhere. `measure`: its value, 0 where it has none. */
export function linesOf(stops: readonly Stop[], measure: (entry: Entry) => number): Line[] {
  const entries = stops.flatMap(({ result }) => result.entries);
  const once = new Map(entries.map((entry) => [entry.id, entry]));
  return [...once.values()]
    .map((entry) => ({ entry, points: pointsOf(entry.id, stops, measure) }))
    .filter(({ points }) => points.length > 0)
    .sort(holdfastLast);
}

function pointsOf(id: string, stops: readonly Stop[], measure: (entry: Entry) => number): [number, number][] {
  return stops.flatMap(({ at, result }): [number, number][] => {
    const entry = result.entries.find((one) => one.id === id);
    const value = entry ? measure(entry) : 0;
    // 0 has no place on a logarithmic axis.
    return value > 0 ? [[at, value]] : [];
  });
}

export const valuesOf = (lines: readonly Line[]): number[] =>
  lines.flatMap(({ points }) => points.map(([, value]) => value));

/** A dot at each scenario, and the last value at the end of the line. */
export function drawn({ entry, points }: Line, all: readonly Line[]) {
  const entries = all.map((line) => line.entry);
  const last = short(points.at(-1)?.[1] ?? Number.NaN);
  return {
    ...lineSeries(entry, entries, points, `${entry.title}  ${last}`),
    symbol: "circle",
    symbolSize: isHoldfast(entry) ? 8 : 6,
    itemStyle: { color: colourOf(entry) },
  };
}
