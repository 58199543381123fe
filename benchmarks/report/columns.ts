import type { Figures, LoadFigures, StillFigures } from "../figures/result.ts";
import { inMs, short } from "./numbers.ts";

export interface Column {
  /** Two lines; the upper one may stand above several columns. */
  readonly head: readonly [string, string];
  readonly width: number;
  readonly value: (figures: Figures) => number | null;
  readonly text: (value: number) => string;
  /** "none": it counts what must not happen. "neither": a circumstance, in which nobody is best. */
  readonly best: "most" | "least" | "none" | "neither";
}

type Rest = Pick<Column, "width" | "text" | "best">;

const LATENCY: Rest = { width: 10, text: inMs, best: "least" };
const COST: Rest = { width: 9, text: short, best: "least" };
const ALARM: Rest = { width: 10, text: short, best: "none" };
const CIRCUMSTANCE: Rest = { width: 9, text: short, best: "neither" };
const SPEED: Rest = { width: 8, text: short, best: "most" };
const FAIRNESS: Rest = { width: 7, text: (jain) => jain.toFixed(2), best: "most" };
const SHARE: Rest = { width: 10, text: (share) => `${short(share * 100)} %`, best: "least" };

/** Of callers in a closed loop. */
export const LOAD_COLUMNS: readonly Column[] = [
  load("acqs", "before", CIRCUMSTANCE, (figures) => figures.warmUp),
  load("", "acq/s", SPEED, (figures) => figures.perSecond),
  load("hand-off", "median", LATENCY, (figures) => figures.handoffMedian),
  load("", "p99", LATENCY, (figures) => figures.handoffP99),
  load("wait", "median", LATENCY, (figures) => waited(figures, figures.waitMedian)),
  load("", "p99", LATENCY, (figures) => waited(figures, figures.waitP99)),
  load("", "max", LATENCY, (figures) => waited(figures, figures.waitMax)),
  load("calls", "per acq", COST, (figures) => figures.calls),
  load("writes", "client", COST, (figures) => figures.writes),
  load("per acq", "Redis", COST, (figures) => figures.redisWrites),
  load("CPU, µs", "Redis", COST, (figures) => figures.redisCpu),
  load("per acq", "client", COST, (figures) => figures.clientCpu),
  load("", "Jain", FAIRNESS, (figures) => figures.jain),
  load("most", "inside", { ...CIRCUMSTANCE, width: 8, text: String }, (figures) => figures.inside),
  load("", "overlaps", ALARM, (figures) => figures.overlaps),
  load("", "failed", { ...ALARM, width: 8 }, (figures) => figures.errors + figures.timeouts),
];

/** Of callers that hold or wait while nothing happens. */
export const STILL_COLUMNS: readonly Column[] = [
  still("calls", "per 10 s", { ...COST, width: 11 }, (figures) => figures.callsPerPeriod),
  still("CPU, % of a", "core: Redis", { ...SHARE, width: 14 }, (figures) => figures.redisShare),
  still("", "client", SHARE, (figures) => figures.clientShare),
  still("bytes per", "caller", { ...COST, width: 12 }, (figures) => figures.bytesEach),
  still("", "timers", COST, (figures) => figures.timers),
  still("", "lost", ALARM, (figures) => figures.lost),
];

function load(
  upper: string,
  lower: string,
  rest: Rest,
  value: (figures: LoadFigures) => number | null,
): Column {
  return {
    head: [upper, lower],
    value: (figures) => (figures.is === "load" ? value(figures) : null),
    ...rest,
  };
}

function still(
  upper: string,
  lower: string,
  rest: Rest,
  value: (figures: StillFigures) => number | null,
): Column {
  return {
    head: [upper, lower],
    value: (figures) => (figures.is === "still" ? value(figures) : null),
    ...rest,
  };
}

/** Nobody waited no time: nobody got the lock. */
function waited({ perSecond }: LoadFigures, wait: number): number | null {
  return perSecond > 0 ? wait : null;
}
