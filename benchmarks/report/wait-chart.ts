import { percentile } from "../../tools/numbers.ts";
import type { Entry, ScenarioResult } from "../figures/result.ts";
import { AXIS, frame, lineSeries, logAxis, MUTED, machineLine, roundsOf } from "./chart-theme.ts";
import { holdfastLast, loadRoundsOf } from "./entries.ts";
import { inMs } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

const PLOT = { height: 400, left: 72, right: 260, bottom: 62 };
/** The waits that are kept of each round say little between this and the longest, which is kept too. */
const LAST_PERCENT = 99;
/** 0 has no place on a logarithmic axis. */
const LEAST_MS = 0.01;

interface Curve {
  readonly entry: Entry;
  /** [percent, ms] */
  readonly points: readonly [number, number][];
}

/**
 * How long acquisitions waited, a line for each contender: the quickest percent of them at the
 * left, the slowest at the right. A lock that is fair is level; one that lets callers overtake each
 * other is steep, and steepest at the end: most acquisitions are then those of callers who have
 * just released it, and a few wait for all of them.
 *
 * @param ids those to show; more than ten can hardly be told apart
 */
export function waitChart(title: string, result: ScenarioResult, ids: ReadonlySet<string>): Chart {
  const curves = result.entries
    .filter((entry) => ids.has(entry.id) && loadRoundsOf(entry).some(({ waits }) => waits.length > 0))
    .map(curveOf)
    .sort(holdfastLast);
  const rounds = roundsOf(result, (all) => `All ${all} together`);
  const lines = [
    `${result.about}. ${rounds}; at the right, the ${LAST_PERCENT}th percentile and the longest wait.`,
    machineLine(result.machine),
  ];
  const all = curves.flatMap(({ points }) => points.map(([, ms]) => ms));
  const { height, option } = frame(title, lines, PLOT);
  return {
    height,
    option: {
      ...option,
      xAxis: {
        type: "value",
        max: 100,
        interval: 10,
        name: "percentile of acquisitions",
        nameLocation: "middle",
        nameGap: 32,
        nameTextStyle: { color: MUTED },
        axisLine: { lineStyle: { color: AXIS } },
        axisLabel: { color: MUTED },
        splitLine: { show: false },
      },
      yAxis: logAxis(all, (ms) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`)),
      series: curves.map((curve) => drawn(curve, curves)),
    },
  };
}

function curveOf(entry: Entry): Curve {
  const ascending = Float64Array.from(loadRoundsOf(entry).flatMap(({ waits }) => waits)).sort();
  const points = Array.from({ length: LAST_PERCENT }, (_, index): [number, number] => {
    const percent = index + 1;
    return [percent, Math.max(LEAST_MS, percentile(ascending, percent / 100))];
  });
  return { entry, points: [...points, [100, percentile(ascending, 1)]] };
}

function drawn({ entry, points }: Curve, all: readonly Curve[]) {
  const last = points.slice(-2).map(([, ms]) => inMs(ms));
  const entries = all.map((curve) => curve.entry);
  const series = lineSeries(entry, entries, points, `${entry.title}  ${last.join(" · ")}`);
  return { ...series, showSymbol: false };
}
