import type { Entry, ScenarioResult } from "../figures/result.ts";
import { AXIS, colourOf, frame, GRID, INK, MUTED, machineLine, roundsOf, WARNING } from "./chart-theme.ts";
import { caveatOf, isHoldfast, loadRoundsOf, perSecondOf } from "./entries.ts";
import { short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

const ROW = 38;
const LABELS = 215;
const FLOOR = 22;
const AXIS_LABELS = 42;

/**
 * Acquisitions per second, a bar for each contender, the fastest on top. The axis is linear: a bar
 * on a logarithmic one has a length without meaning. Dots are the rounds.
 *
 * @param floor what no lock can exceed, as a dashed line
 * @param note what a reader must know of a bar
 */
export function throughputChart(
  title: string,
  result: ScenarioResult,
  floor: Entry | null,
  note: string | null = null,
): Chart {
  const shown = result.entries
    .filter((entry) => entry.waits !== "floor" && loadRoundsOf(entry).length > 0)
    .sort((one, other) => perSecondOf(other) - perSecondOf(one));
  const most = Math.max(...shown.flatMap(speeds), floor === null ? 0 : perSecondOf(floor));
  const lines = [
    `${result.about}. ${roundsOf(result)}${result.rounds > 1 ? "; dots are single rounds" : ""}.`,
    ...(note === null ? [] : [note]),
    machineLine(result.machine),
  ];
  const above = floor === null ? 0 : FLOOR;
  const plot = { height: shown.length * ROW, left: LABELS, right: 40, bottom: AXIS_LABELS, above };
  const { height, option } = frame(title, lines, plot);
  return {
    height,
    option: {
      ...option,
      xAxis: {
        type: "value",
        max: most * 1.14,
        axisLabel: { color: MUTED, showMaxLabel: false, formatter: short },
        splitLine: { lineStyle: { color: GRID }, showMaxLine: false },
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: shown.map(({ title }) => title),
        axisTick: { show: false },
        axisLine: { lineStyle: { color: AXIS } },
        axisLabel: { interval: 0, margin: 10, formatter: rowLabels(shown), rich: ROW_STYLES },
      },
      series: [
        {
          type: "bar",
          silent: true,
          barWidth: 18,
          data: shown.map((entry) => ({ value: perSecondOf(entry), itemStyle: { color: colourOf(entry) } })),
          ...(floor === null ? {} : { markLine: floorLine(floor) }),
        },
        roundDots(shown, result.rounds),
      ],
    },
  };
}

const ROW_STYLES = {
  holdfast: { fontSize: 13, lineHeight: 16, fontWeight: "bold" as const, color: INK },
  other: { fontSize: 13, lineHeight: 16, color: INK },
  waits: { fontSize: 11, lineHeight: 14, color: MUTED },
};

/** A contender, and below it how it waits, which is what its colour says. */
function rowLabels(shown: readonly Entry[]): (title: string) => string {
  const labels = shown.map((entry): [string, string] => [
    entry.title,
    `{${isHoldfast(entry) ? "holdfast" : "other"}|${entry.title}}\n{waits|${entry.waits}}`,
  ]);
  const byTitle = new Map(labels);
  return (title) => byTitle.get(title) ?? title;
}

/** The label of a row stands right of its fastest round, where no dot is in its way. */
function roundDots(shown: readonly Entry[], wanted: number) {
  return {
    type: "scatter" as const,
    silent: true,
    symbolSize: 4,
    // An opacity would fade the labels too.
    itemStyle: { color: "rgba(33, 37, 41, 0.6)", opacity: 1 },
    z: 6,
    data: shown.flatMap((entry, row) => {
      const ascending = speeds(entry).sort((one, other) => one - other);
      return ascending.map((value, index) => ({
        value: [value, row],
        label: valueLabel(entry, wanted, index === ascending.length - 1),
      }));
    }),
  };
}

function valueLabel(entry: Entry, wanted: number, show: boolean) {
  const caveat = caveatOf(entry, wanted);
  return {
    show,
    position: "right" as const,
    formatter: `{figure|${short(perSecondOf(entry))}}${caveat === "" ? "" : `{caveat|${caveat}}`}`,
    // Hides the lines behind it.
    backgroundColor: "#ffffff",
    padding: [1, 2],
    rich: {
      figure: { color: INK, fontSize: 13, ...(isHoldfast(entry) ? { fontWeight: "bold" as const } : {}) },
      caveat: { color: WARNING, fontSize: 12, padding: [0, 0, 0, 14] },
    },
  };
}

function floorLine(floor: Entry) {
  const text = `${floor.title}, ${short(perSecondOf(floor))}`;
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: MUTED, type: [5, 4], width: 1.5 },
    label: {
      position: "start" as const,
      align: "right" as const,
      formatter: text,
      color: MUTED,
      fontSize: 12,
    },
    data: [{ xAxis: perSecondOf(floor) }],
  };
}

function speeds(entry: Entry): number[] {
  return loadRoundsOf(entry).map(({ perSecond }) => perSecond);
}
