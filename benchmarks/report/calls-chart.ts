import type { Entry, ScenarioResult } from "../figures/result.ts";
import { AXIS, colourOf, frame, lineSeries, logAxis, MUTED, machineLine, roundsOf } from "./chart-theme.ts";
import { holdfastLast, isHoldfast, loadOf } from "./entries.ts";
import { short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

/** One scenario among those that differ in the number of callers. */
export interface Size {
  readonly processes: number;
  /** In each process. */
  readonly callers: number;
  readonly result: ScenarioResult;
}

interface Line {
  readonly entry: Entry;
  /** [processes, calls] */
  readonly points: readonly [number, number][];
}

const PLOT = { height: 380, left: 64, right: 215, bottom: 62 };

/**
 * Commands per acquisition as processes are added, a line for each contender. Both axes are logarithmic: what grows in
 * proportion to the processes rises steadily, and what does not depend on them is level.
 *
 * @param sizes by ascending number of processes
 */
export function callsChart(title: string, about: string, sizes: readonly Size[]): Chart {
  const lines = linesOf(sizes);
  const [first] = sizes;
  const header = first ? [`${about} ${roundsOf(first.result)}.`, machineLine(first.result.machine)] : [about];
  const processes = sizes.map((size) => size.processes);
  const calls = lines.flatMap(({ points }) => points.map(([, count]) => count));
  const { height, option } = frame(title, header, PLOT);
  return {
    height,
    option: {
      ...option,
      xAxis: {
        type: "log",
        logBase: 2,
        min: Math.min(...processes) / 1.2,
        max: Math.max(...processes) * 1.05,
        axisLine: { lineStyle: { color: AXIS } },
        axisTick: { customValues: processes },
        axisLabel: { color: MUTED, lineHeight: 17, customValues: processes, formatter: sizeLabels(sizes) },
        splitLine: { show: false },
      },
      yAxis: logAxis([1, ...calls], (count) => (count < 10 ? `${count}` : short(count))),
      series: lines.map((line) => drawn(line, lines)),
    },
  };
}

/** Each contender once, whose calls were counted anywhere. */
function linesOf(sizes: readonly Size[]): Line[] {
  const entries = sizes.flatMap(({ result }) => result.entries).filter(({ waits }) => waits !== "floor");
  const once = new Map(entries.map((entry) => [entry.id, entry]));
  return [...once.values()]
    .map((entry) => ({ entry, points: pointsOf(entry.id, sizes) }))
    .filter(({ points }) => points.length > 0)
    .sort(holdfastLast);
}

function pointsOf(id: string, sizes: readonly Size[]): [number, number][] {
  return sizes.flatMap(({ processes, result }): [number, number][] => {
    const entry = result.entries.find((one) => one.id === id);
    const calls = (entry && loadOf(entry)?.calls) ?? 0;
    // 0 has no place on a logarithmic axis.
    return calls > 0 ? [[processes, calls]] : [];
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

function sizeLabels(sizes: readonly Size[]): (processes: number) => string {
  const labels = sizes.map(({ processes, callers }): [number, string] => [
    processes,
    `${processes} processes\n× ${callers} ${callers === 1 ? "caller" : "callers"}`,
  ]);
  const byProcesses = new Map(labels);
  return (processes) => byProcesses.get(Math.round(processes)) ?? "";
}
