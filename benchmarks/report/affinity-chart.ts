import type { ScenarioResult } from "../figures/result.ts";
import { AXIS, frame, logAxis, MUTED, machineLine, roundsOf } from "./chart-theme.ts";
import { drawn, linesOf, valuesOf } from "./contender-lines.ts";
import { perSecondOf } from "./entries.ts";
import { short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

/** One scenario among those that differ in how much a process stays with its own locks. */
export interface Share {
  /** Of the acquisitions, in percent. */
  readonly percent: number;
  readonly result: ScenarioResult;
}

const PLOT = { height: 380, left: 72, right: 260, bottom: 62 };

/**
 * Acquisitions per second as processes stay more with locks of their own, a line for each
 * contender. The axis is logarithmic: the last step is from one acquisition in ten that asks Redis
 * to none.
 *
 * @param shares by ascending percent
 */
export function affinityChart(title: string, shares: readonly Share[]): Chart {
  const stops = shares.map(({ percent, result }) => ({ at: percent, result }));
  const lines = linesOf(stops, perSecondOf);
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
      yAxis: logAxis(valuesOf(lines), short),
      series: lines.map((line) => drawn(line, lines)),
    },
  };
}
