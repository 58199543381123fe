import { aboutOf, type Figure, middle, PATIENCE, type Table } from "../table/lines.ts";
import { ACCENT, AXIS, frame, INK, MUTED, machineLine, OTHERS } from "./chart-theme.ts";
import { inMs, short } from "./numbers.ts";
import type { Chart } from "./render-svg.ts";

/** Rows of the README's table, and what they mean. */
const PANELS = [
  {
    kind: "longestWait",
    title: "Longest wait",
    lines: "of 16 callers of one lock,\nin 4 processes",
  },
  { kind: "handOff", title: "Hand-off", lines: "from unlock to the next holder,\nin another process" },
  { kind: "gone", title: "Error when Redis is gone", lines: "from the call of lock()\nto its error" },
] as const;

const ROW = 30;
const LABELS = 175;
const PANEL = 205;
/** The rest of a panel is for the figures at the ends of the bars. */
const BARS = 120;
const PANEL_TITLE = 64;

/** What a caller notices of a lock, a panel for each row and a bar for each library; shorter is better. */
export function comparisonChart({ libraries, rows, machine }: Table): Chart {
  const names = libraries.map((name) => name.replaceAll("`", ""));
  const [ours = ""] = names;
  const shown = PANELS.map(({ kind }) => {
    const about = aboutOf(kind);
    const figures = rows.find((row) => row.about === about)?.figures;
    if (figures === undefined) throw new Error(`The table has no row '${about}'`);
    return figures;
  });
  const all = shown.map((figures) => figures.map(time));
  const rounds = Math.min(...shown.flat().map((figure) => figure.length));
  const lines = [`Medians of ${rounds} warm rounds. Shorter is better.`, machineLine(machine)];
  const plot = { height: names.length * ROW, left: LABELS, right: 0, bottom: 16, above: PANEL_TITLE };
  const { height, option } = frame("A lock that callers wait for", lines, plot);
  const leftOf = (panel: number): number => LABELS + panel * PANEL;
  return {
    height,
    option: {
      ...option,
      title: [
        option.title,
        ...PANELS.map(({ title, lines }, panel) => ({
          text: title,
          subtext: lines,
          left: leftOf(panel) - 5,
          top: option.grid.top - PANEL_TITLE,
          itemGap: 4,
          textStyle: { fontSize: 14, color: INK },
          subtextStyle: { fontSize: 12, lineHeight: 15, color: MUTED },
        })),
      ],
      grid: PANELS.map((_, panel) => ({ ...option.grid, left: leftOf(panel), width: BARS, right: "auto" })),
      xAxis: all.map((times, gridIndex) => ({
        type: "value",
        gridIndex,
        max: Math.max(...times),
        show: false,
      })),
      yAxis: PANELS.map((_, gridIndex) => ({
        type: "category",
        gridIndex,
        inverse: true,
        data: names,
        axisTick: { show: false },
        axisLine: { lineStyle: { color: AXIS } },
        axisLabel: {
          show: gridIndex === 0,
          interval: 0,
          margin: 10,
          color: INK,
          formatter: (name: string) => (name === ours ? `{ours|${name}}` : name),
          rich: { ours: { fontSize: 13, fontWeight: "bold", color: INK } },
        },
      })),
      series: all.map((times, panel) => ({
        type: "bar",
        silent: true,
        xAxisIndex: panel,
        yAxisIndex: panel,
        barWidth: 16,
        barMinHeight: 2,
        data: times.map((value, i) => ({
          value,
          itemStyle: { color: i === 0 ? ACCENT : OTHERS },
          label: {
            show: true,
            position: "right",
            formatter: text(value),
            color: INK,
            fontSize: 12,
            fontWeight: i === 0 ? "bold" : "normal",
          },
        })),
      })),
    },
  };
}

function text(time: number): string {
  if (time === PATIENCE) return `none in ${PATIENCE / 1_000} s`;
  return time < 1_000 ? inMs(time) : `${short(time / 1_000)} s`;
}

/** The median, in ms; `PATIENCE`: there was none by then. */
function time(figure: Figure): number {
  const value = figure === "never" ? null : middle(figure);
  if (value === null) throw new Error("The table lacks a figure that the chart shows");
  return Math.min(value, PATIENCE);
}
