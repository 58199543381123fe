import type { Waits } from "../contenders/contender.ts";
import type { Entry, Machine, ScenarioResult } from "../figures/result.ts";
import { isHoldfast, isWarm } from "./entries.ts";

// What all charts share. They are shown at a width of 800 px, on white, in whatever sans-serif font
// the reader has.

export const WIDTH = 800;
export const INK = "#212529";
export const MUTED = "#5c636a";
export const GRID = "#e9ecef";
export const AXIS = "#adb5bd";
export const WARNING = "#c92a2a";

const FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif";
export const ACCENT = "#e8590c";
export const OTHERS = "#8b95a1";

/** The more a waiter is told, the bluer. */
const COLOURS: Readonly<Record<Waits, string>> = {
  "hand-off": "#2b6cb0",
  broadcast: "#74a3d4",
  spinning: "#8b95a1",
  polling: "#b4bcc6",
  floor: "#495057",
};

const DASHES = ["solid", [7, 3], [2, 2], [9, 3, 2, 3]] as const;

export function colourOf(entry: Entry): string {
  return isHoldfast(entry) ? ACCENT : COLOURS[entry.waits];
}

/** Entries of one colour differ by their dashes, in the order in which they come. */
function dashOf(entry: Entry, all: readonly Entry[]): "solid" | number[] {
  const alike = all.filter((other) => colourOf(other) === colourOf(entry));
  const dash = DASHES[alike.indexOf(entry) % DASHES.length] ?? "solid";
  return dash === "solid" ? dash : [...dash];
}

/** Where the values are drawn: its height, and the space around it for labels. */
interface Plot {
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  /** Between the header and the plot. */
  readonly above?: number;
}

/** A title at the left, below it what a reader must know to judge the figures, and below that the plot. */
export function frame(
  title: string,
  lines: readonly string[],
  { height, left, right, bottom, above = 0 }: Plot,
) {
  const top = 58 + lines.length * 18 + above;
  const option = {
    animation: false,
    backgroundColor: "#ffffff",
    textStyle: { fontFamily: FONT, fontSize: 13, color: INK },
    title: {
      text: title,
      subtext: lines.join("\n"),
      left: 16,
      top: 14,
      itemGap: 8,
      textStyle: { fontFamily: FONT, fontSize: 18, fontWeight: "bold" as const, color: INK },
      subtextStyle: { fontFamily: FONT, fontSize: 13, lineHeight: 18, color: MUTED },
    },
    grid: { left, right, top, bottom, outerBoundsMode: "none" as const },
  };
  return { height: top + height + bottom, option };
}

/** "Medians of 5 warm rounds", "One warm round"; of results from before there was a warm-up: "One round". */
export function roundsOf(
  result: ScenarioResult,
  several = (rounds: string) => `Medians of ${rounds}`,
): string {
  const what = isWarm(result) ? "warm round" : "round";
  return result.rounds === 1 ? `One ${what}` : several(`${result.rounds} ${what}s`);
}

/** "Intel Xeon Platinum 8375C, 8 cores · Node.js 20.20.2 · Redis 7.2.4 · Java 17.0.19" */
export function machineLine(machine: Machine): string {
  const software = `Node.js ${machine.node.replace(/^v/, "")} · Redis ${machine.redis.replace(/^v/, "")}`;
  const java = machine.java === null ? "" : ` · Java ${machine.java}`;
  return `${processor(machine)}, ${machine.cores} cores · ${software}${java}`;
}

/**
 * A logarithmic axis that ends with the values. Its lines are at the powers of ten, and between
 * them where there is room.
 */
export function logAxis(values: readonly number[], unit: (value: number) => string) {
  const min = Math.min(...values) / 1.15;
  const max = Math.max(...values) * 1.15;
  const multiples = max / min > 1_000 ? [1] : [1, 2, 5];
  const ticks = Array.from({ length: 13 }, (_, index) => 10 ** (index - 5))
    .flatMap((power) => multiples.map((multiple) => Number((power * multiple).toPrecision(3))))
    .filter((tick) => tick >= min && tick <= max);
  return {
    type: "log" as const,
    min,
    max,
    axisLine: { show: true, lineStyle: { color: AXIS } },
    axisTick: { customValues: ticks },
    axisLabel: { color: MUTED, customValues: ticks, formatter: unit },
    splitLine: { lineStyle: { color: GRID } },
  };
}

/**
 * A line of a contender, in its colour, with a label at its end that is moved away from those of
 * other lines; a halo keeps it readable on top of them. `all`: the entries of the chart.
 */
export function lineSeries(
  entry: Entry,
  all: readonly Entry[],
  points: readonly (readonly [number, number])[],
  label: string,
) {
  const isOurs = isHoldfast(entry);
  return {
    type: "line" as const,
    silent: true,
    data: points.map(([x, y]) => [x, y]),
    lineStyle: { color: colourOf(entry), width: isOurs ? 3 : 1.8, type: dashOf(entry, all) },
    endLabel: {
      show: true,
      distance: 10,
      formatter: label,
      color: isOurs ? ACCENT : INK,
      fontSize: 12,
      textBorderColor: "#ffffff",
      textBorderWidth: 3,
    },
    labelLayout: { moveOverlap: "shiftY" as const },
  };
}

function processor({ cpu }: Machine): string {
  return cpu
    .replace(/\((R|TM|tm)\)/g, "")
    .replace(/ (CPU|@|\d+-Core Processor).*$/, "")
    .replace(/\s+/g, " ")
    .trim();
}
