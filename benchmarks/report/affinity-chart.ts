import type { Entry, ScenarioResult } from "../figures/result.ts";
import { AXIS, colourOf, frame, lineSeries, logAxis, MUTED, machineLine, roundsOf } from "./chart-theme.ts";
import { holdfastLast, isHoldfast, perSecondOf } from "./entries.ts";
import { short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

/** One scenario among those that differ in how much a process stays with its own locks. */
export interface Share {
  /** Of the acquisitions, in percent. */
  readonly percent: number;
  readonly result: ScenarioResult;
}

interface Line {
  readonly entry: Entry;
  /** [percent, acquisitions per second] */
  readonly points: readonly [number, number][];
}

const PLOT = { height: 380, left: 72, right: 260, bottom: 62 };

/**
 * Acquisitions per second as processes stay more with locks of their own, a line for each contender. The axis is logarithmic:
 * the last step is from one acquisition in ten that asks Redis to none.
 *
 * @param shares by ascending percent
 */
export function affinityChart(title: string, shares: readonly Share[]): Chart {
  const lines = linesOf(shares);
  const [first] = shares;
  const about = "1 000 locks, 4 processes with 4 callers each.";
  const header = first ? [`${about} ${roundsOf(first.result)}.`, machineLine(first.result.machine)] : [about];
  const { height, option } = frame(title, header, PLOT);
  return {
    height,
    option: {
      ...option,
      xAxis: {
        type: "value",
        min: 0,
        max: 100,
        name: "acquisitions of the process's own locks, %",
        nameLocation: "middle",
        nameGap: 32,
        nameTextStyle: { color: MUTED },
        axisLine: { lineStyle: { color: AXIS } },
        axisLabel: { color: MUTED },
        splitLine: { show: false },
      },
      yAxis: logAxis(
        lines.flatMap(({ points }) => points.map(([, rate]) => rate)),
        short,
      ),
      series: lines.map((line) => drawn(line, lines)),
    },
  };
}

/** Each contender once that got anything. */
function linesOf(shares: readonly Share[]): Line[] {
  const entries = shares.flatMap(({ result }) => result.entries);
  const once = new Map(entries.map((entry) => [entry.id, entry]));
  return [...once.values()]
    .map((entry) => ({ entry, points: pointsOf(entry.id, shares) }))
    .filter(({ points }) => points.length > 0)
    .sort(holdfastLast);
}

function pointsOf(id: string, shares: readonly Share[]): [number, number][] {
  return shares.flatMap(({ percent, result }): [number, number][] => {
    const entry = result.entries.find((one) => one.id === id);
    const rate = entry ? perSecondOf(entry) : 0;
    // 0 has no place on a logarithmic axis.
    return rate > 0 ? [[percent, rate]] : [];
  });
}

function drawn({ entry, points }: Line, all: readonly Line[]) {
  const entries = all.map((line) => line.entry);
  const last = short(points.at(-1)?.[1] ?? Number.NaN);
  return {
    ...lineSeries(entry, entries, points, `${entry.title}  ${last}`),
    symbol: "circle",
    symbolSize: isHoldfast(entry) ? 8 : 6,
    itemStyle: { color: colourOf(entry) },
  };
}
