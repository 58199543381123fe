import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { refuseBusy } from "../figures/busy.ts";
import type { Entry, ScenarioResult } from "../figures/result.ts";
import type { Table } from "../table/lines.ts";
import { affinityChart } from "./affinity-chart.ts";
import { callsChart, type Size } from "./calls-chart.ts";
import { comparisonChart } from "./comparison-chart.ts";
import { loadOf, perSecondOf } from "./entries.ts";
import { short } from "./numbers.ts";
import { type Chart, renderSvg } from "./render-svg.ts";
import { throughputChart } from "./throughput-chart.ts";
import { waitChart } from "./wait-chart.ts";

/** Processes × callers in each, as the names of the hot scenarios have them. */
const SIZES = [
  { processes: 2, callers: 1 },
  { processes: 4, callers: 4 },
  { processes: 12, callers: 4 },
  { processes: 32, callers: 1 },
] as const;

/** Of the acquisitions, in percent, that are of a process's own locks. */
const SHARES = [0, 50, 90, 100];

/**
 * Draws what there are results for into `dir`, which is made when missing:
 *
 * | file | from |
 * |---|---|
 * | comparison.svg | the README's table |
 * | throughput-hot.svg | hot-4x4 |
 * | throughput-uncontended.svg | uncontended |
 * | waits-hot.svg | hot-4x4 |
 * | calls-by-processes.svg | hot-2x1, hot-4x4, hot-12x4, hot-32x1: two of them at least |
 * | affinity.svg | affinity-0, affinity-50, affinity-90, affinity-100: two of them at least |
 * | throughput-one-process.svg | one-process |
 * | waits-ping-pong.svg | ping-pong |
 * | waits-first-of-another.svg | first-of-another |
 *
 * @returns the paths of the files
 * @throws Error for a result of a busy machine
 */
export async function drawCharts(
  dir: string,
  results: readonly ScenarioResult[],
  table: Table | null,
): Promise<string[]> {
  for (const result of results) refuseBusy(result.scenario, result);
  const drawable = results.filter(({ entries }) => entries.some((entry) => perSecondOf(entry) > 0));
  const charts = chartsOf(new Map(drawable.map((result) => [result.scenario, result])));
  if (table !== null) charts.set("comparison", comparisonChart(table));
  await mkdir(dir, { recursive: true });
  const paths: string[] = [];
  for (const [name, chart] of charts) {
    const path = join(dir, `${name}.svg`);
    await writeFile(path, renderSvg(name, chart));
    paths.push(path);
  }
  return paths;
}

function chartsOf(results: ReadonlyMap<string, ScenarioResult>): Map<string, Chart> {
  const charts = new Map<string, Chart>();
  const hot = results.get("hot-4x4");
  if (hot !== undefined) {
    const floor = floorIn(hot);
    charts.set(
      "throughput-hot",
      throughputChart("Acquisitions per second of one contended lock", hot, floor, localHandOffs(hot)),
    );
    charts.set("waits-hot", waitChart("Time to wait for one contended lock", hot, idsIn(hot)));
  }
  const uncontended = results.get("uncontended");
  if (uncontended !== undefined) {
    const floor = floorIn(uncontended);
    charts.set(
      "throughput-uncontended",
      throughputChart("Acquisitions per second without contention", uncontended, floor),
    );
  }
  const sizes = sizesIn(results);
  if (sizes.length > 1)
    charts.set(
      "calls-by-processes",
      callsChart(
        "Commands to Redis per acquisition, by number of processes",
        "All callers want one lock and hold it for no time. A script counts as one command.",
        sizes,
      ),
    );
  const shares = SHARES.flatMap((percent) => {
    const result = results.get(`affinity-${percent}`);
    return result === undefined ? [] : [{ percent, result }];
  });
  if (shares.length > 1)
    charts.set("affinity", affinityChart("Acquisitions per second of locks of one's own", shares));
  const together = results.get("one-process");
  if (together !== undefined)
    charts.set(
      "throughput-one-process",
      throughputChart("Acquisitions per second of one lock in one process", together, null),
    );
  const WAITS = {
    "ping-pong": "Time to take a lock in turn",
    "first-of-another": "Time to take another's lock",
  };
  for (const [name, title] of Object.entries(WAITS)) {
    const result = results.get(name);
    if (result !== undefined) charts.set(`waits-${name}`, waitChart(title, result, idsIn(result)));
  }
  return charts;
}

/** What `lock` is fast by. */
function localHandOffs({ entries }: ScenarioResult): string | null {
  const lock = entries.find(({ id }) => id === "lock");
  const writes = lock && loadOf(lock)?.writes;
  if (writes == null) return null;
  return `Holdfast lock hands off inside a process: ${short(writes)} writes to Redis per acquisition; fairLock does not.`;
}

function sizesIn(results: ReadonlyMap<string, ScenarioResult>): Size[] {
  return SIZES.flatMap(({ processes, callers }) => {
    const result = results.get(`hot-${processes}x${callers}`);
    return result === undefined ? [] : [{ processes, callers, result }];
  });
}

/** One of the three spin locks stands for all. */
function idsIn({ entries }: ScenarioResult): Set<string> {
  const ids = entries.filter(({ waits }) => waits !== "floor").map(({ id }) => id);
  return new Set(ids.filter((id) => id !== "spin-10" && id !== "spin-80"));
}

function floorIn(result: ScenarioResult): Entry | null {
  return result.entries.find((entry) => entry.waits === "floor" && loadOf(entry) !== null) ?? null;
}
