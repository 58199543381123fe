import { print } from "../../demo/terminal.ts";
import type { LoadFigures, ScenarioResult } from "../figures/result.ts";
import { median } from "../figures/statistics.ts";
import { loadOf } from "../report/entries.ts";
import { inMs, NONE, short } from "../report/numbers.ts";
import { saveTable } from "../report/results.ts";
import { type Run, runScenario } from "../run.ts";
import { scenarios } from "../scenarios/all.ts";
import { type Library, PATIENCE, timesToError, timeToLoss } from "./trials.ts";

const TITLES: Readonly<Record<Library, string>> = {
  lock: "Holdfast `lock`",
  redlock: "redlock",
  "redis-semaphore": "redis-semaphore",
  "java-lock": "Redisson `RLock` (Java)",
};

/** A figure of one library, by round; "never": it has no such signal. */
type Figure = readonly (number | null)[] | "never";

interface Row {
  readonly about: string;
  readonly figures: readonly Figure[];
  readonly text: (value: number) => string;
  /** How many times the first library's figure it is stands beside it. */
  readonly isCompared: boolean;
}

/**
 * The figures of the README's comparison: scenarios of the benchmarks with these libraries alone, and what a holder and a
 * caller are told when something goes wrong. `hurry`: one round, to see that it works.
 */
export async function makeTable(
  run: Run,
  options: { hurry: boolean; save: string | null },
): Promise<boolean> {
  const libraries = (Object.keys(TITLES) as Library[]).filter(
    (library) => library !== "java-lock" || run.javaTrouble === null,
  );
  const measure = (name: string): Promise<ScenarioResult> => {
    const scenario = scenarios.find((known) => known.name === name);
    if (!scenario) throw new Error(`There is no scenario '${name}'`);
    const contenders = scenario.contenders.filter(
      (id) => id.startsWith("floor-") || libraries.some((library) => library === id),
    );
    return runScenario(
      { ...scenario, contenders, ...(options.hurry && { duration: 1_000, slices: 1 }) },
      run,
    );
  };
  const wakeUp = await measure("wake-up");
  const hot = await measure("hot-4x4");
  const free = await measure("uncontended");
  run.progress.clear();

  const losses = new Map<Library, (number | null)[]>();
  const errors = { gone: [] as (number | null)[][], hangs: [] as (number | null)[][] };
  for (let round = 0; round < run.rounds; round++) {
    for (const library of libraries)
      if (library !== "java-lock")
        losses.set(library, [...(losses.get(library) ?? []), await timeToLoss(library, run.signal)]);
    for (const how of ["gone", "hangs"] as const)
      errors[how].push(await timesToError(libraries, how, run.signal));
  }

  const of = (result: ScenarioResult, id: string, value: (figures: LoadFigures) => number | null): Figure => {
    const rounds = result.entries.find((entry) => entry.id === id)?.rounds ?? [];
    return rounds.map((figures) => (figures.is === "load" ? value(figures) : null));
  };
  const each = (value: (library: Library, i: number) => Figure): Figure[] => libraries.map(value);
  const pair = ({ perSecond }: LoadFigures): number => 1_000_000 / perSecond;
  const ms = { text: inMs, isCompared: true };
  const rows: Row[] = [
    {
      about: "hand-off: unlock to the next holder, in another process",
      figures: each((id) => of(wakeUp, id, ({ handoffMedian }) => handoffMedian)),
      ...ms,
    },
    {
      about: "turns of 16 callers of one lock (Jain's index; 1: all had the same)",
      figures: each((id) => of(hot, id, ({ jain }) => jain)),
      text: (jain) => jain.toFixed(2),
      isCompared: false,
    },
    {
      about: "longest wait of these callers",
      figures: each((id) => of(hot, id, ({ waitMax }) => waitMax)),
      ...ms,
    },
    {
      about: "loss told after the event loop was blocked for longer than the lease",
      figures: each((id) => losses.get(id) ?? "never"),
      ...ms,
      isCompared: false,
    },
    {
      about: "error of `lock()` when Redis is gone",
      figures: each((_, i) => errors.gone.map((of) => of[i] ?? null)),
      ...ms,
    },
    {
      about: "error of `lock()` when Redis hangs",
      figures: each((_, i) => errors.hangs.map((of) => of[i] ?? null)),
      ...ms,
    },
    {
      about: "lock and unlock, nobody else",
      figures: each((id) => of(free, id, pair)),
      text: (us) => `${short(us)} µs`,
      isCompared: true,
    },
  ];
  const [floor] = free.entries.filter(({ id }) => id === "floor-pair");
  const figures = floor && loadOf(floor);
  print(`| measured | ${libraries.map((library) => TITLES[library]).join(" | ")} |`);
  print(`|---|${libraries.map(() => "---|").join("")}`);
  for (const row of rows) print(`| ${[row.about, ...cells(row)].join(" | ")} |`);
  print();
  print(`Medians of ${run.rounds} rounds. In brackets: how many times Holdfast's figure it is.`);
  if (figures) print(`Two scripts that do nothing, on the same connection: ${short(pair(figures))} µs.`);
  if (run.javaTrouble !== null) print(`Redisson is left out: ${run.javaTrouble}.`);
  if (options.save !== null)
    await saveTable(options.save, {
      about: "The README's comparison. Null: no answer within 30 s.",
      seed: run.seed,
      machine: run.machine,
      libraries: libraries.map((library) => TITLES[library]),
      rows: rows.map(({ about, figures }) => ({ about, figures })),
    });
  return [wakeUp, hot, free].every(({ entries }) =>
    entries.every(({ id, trouble }) => id !== "lock" || trouble.length === 0),
  );
}

function cells({ figures, text, isCompared }: Row): string[] {
  const values = figures.map((figure) => (figure === "never" ? figure : middle(figure)));
  const [ours] = values;
  return values.map((value, i) => {
    if (value === "never") return "never";
    if (value === null) return NONE;
    if (value === Number.POSITIVE_INFINITY) return `none within ${PATIENCE / 1_000} s`;
    const isBeside = isCompared && i > 0 && typeof ours === "number" && Number.isFinite(ours) && ours > 0;
    return isBeside ? `${text(value)} (${short(value / ours)} ×)` : text(value);
  });
}

/** A null was not answered in time, and counts as longer than all others. Null: there was no round. */
function middle(rounds: readonly (number | null)[]): number | null {
  return rounds.length === 0 ? null : median(rounds.map((value) => value ?? Number.POSITIVE_INFINITY));
}
