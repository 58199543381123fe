import type { Entry, ScenarioResult } from "../figures/result.ts";
import { AXIS, frame, logAxis, MUTED, machineLine, roundsOf } from "./chart-theme.ts";
import { drawn, linesOf, valuesOf } from "./contender-lines.ts";
import { loadOf } from "./entries.ts";
import { short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

/** One scenario among those that differ in the number of callers. */
export interface Size {
  readonly processes: number;
  /** In each process. */
  readonly callers: number;
  readonly result: ScenarioResult;
}

const PLOT = { height: 380, left: 64, right: 215, bottom: 62 };

/**
 * Commands per acquisition as processes are added, a line for each contender. Both axes are
 * logarithmic: what grows in proportion to the processes rises steadily, and what does not depend
 * on them is level.
 *
 * @param sizes by ascending number of processes
 */
export function callsChart(title: string, about: string, sizes: readonly Size[]): Chart {
  const stops = sizes.map(({ processes, result }) => ({ at: processes, result }));
  const lines = linesOf(stops, callsOf);
  const [first] = sizes;
  const header = first ? [`${about} ${roundsOf(first.result)}.`, machineLine(first.result.machine)] : [about];
  const processes = sizes.map((size) => size.processes);
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
      yAxis: logAxis([1, ...valuesOf(lines)], (count) => (count < 10 ? `${count}` : short(count))),
      series: lines.map((line) => drawn(line, lines)),
    },
  };
}

/** Floors have no callers that could be counted with the others'. */
const callsOf = (entry: Entry): number => (entry.waits === "floor" ? 0 : (loadOf(entry)?.calls ?? 0));

function sizeLabels(sizes: readonly Size[]): (processes: number) => string {
  const labels = sizes.map(({ processes, callers }): [number, string] => [
    processes,
    `${processes} processes\n× ${callers} ${callers === 1 ? "caller" : "callers"}`,
  ]);
  const byProcesses = new Map(labels);
  return (processes) => byProcesses.get(Math.round(processes)) ?? "";
}
