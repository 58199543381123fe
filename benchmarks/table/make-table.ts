import { print } from "../../demo/terminal.ts";
import type { LoadFigures, ScenarioResult } from "../figures/result.ts";
import { loadOf } from "../report/entries.ts";
import { short } from "../report/numbers.ts";
import { saveTable } from "../report/results.ts";
import { type Run, runScenario } from "../run.ts";
import { scenarios } from "../scenarios/all.ts";
import { type Figure, line, row } from "./lines.ts";
import { type Library, timesToError, timeToLoss } from "./trials.ts";

const TITLES: Readonly<Record<Library, string>> = {
  lock: "Holdfast `lock`",
  redlock: "redlock",
  "redis-semaphore": "redis-semaphore",
  "java-lock": "Redisson `RLock` (Java)",
};

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
  const rows = [
    row(
      "handOff",
      each((id) => of(wakeUp, id, ({ handoffMedian }) => handoffMedian)),
    ),
    row(
      "turns",
      each((id) => of(hot, id, ({ jain }) => jain)),
    ),
    row(
      "longestWait",
      each((id) => of(hot, id, ({ waitMax }) => waitMax)),
    ),
    row(
      "loss",
      each((id) => losses.get(id) ?? "never"),
    ),
    row(
      "gone",
      each((_, i) => errors.gone.map((of) => of[i] ?? null)),
    ),
    row(
      "hangs",
      each((_, i) => errors.hangs.map((of) => of[i] ?? null)),
    ),
    row(
      "pair",
      each((id) => of(free, id, pair)),
    ),
  ];
  const [floor] = free.entries.filter(({ id }) => id === "floor-pair");
  const figures = floor && loadOf(floor);
  print(`| measured | ${libraries.map((library) => TITLES[library]).join(" | ")} |`);
  print(`|---|${libraries.map(() => "---|").join("")}`);
  for (const one of rows) print(line(one));
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
      rows,
    });
  return [wakeUp, hot, free].every(({ entries }) =>
    entries.every(({ id, trouble }) => id !== "lock" || trouble.length === 0),
  );
}
