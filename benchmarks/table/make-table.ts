import { print } from "../../demo/terminal.ts";
import { describeBusy } from "../figures/busy.ts";
import type { LoadFigures, ScenarioResult } from "../figures/result.ts";
import { watchMachine } from "../machine.ts";
import { loadOf } from "../report/entries.ts";
import { short } from "../report/numbers.ts";
import { saveTable } from "../report/results.ts";
import { type Run, runScenario } from "../run.ts";
import { scenarios } from "../scenarios/all.ts";
import type { Scenario } from "../scenarios/scenario.ts";
import { type Figure, line, type Row, row } from "./lines.ts";
import { type Library, type Renewing, timesToError, timeToLoss } from "./trials.ts";

const TITLES: Readonly<Record<Library, string>> = {
  lock: "Holdfast `lock`",
  redlock4: "redlock 4.2",
  redlock: "redlock 5 beta",
  "redlock-universal": "redlock-universal",
  "redis-semaphore": "redis-semaphore",
  "java-lock": "Redisson `RLock` (Java)",
};
const SCENARIOS = ["wake-up", "hot-4x4", "uncontended"];
const FLOOR = "floor-pair";

/** What the table takes from the scenarios of the benchmarks: these libraries alone. */
export function tableScenarios(java: boolean): Scenario[] {
  const ids: string[] = [...librariesHere(java), FLOOR];
  return scenarios
    .filter(({ name }) => SCENARIOS.includes(name))
    .map((scenario) => ({
      ...scenario,
      contenders: scenario.contenders.filter((id) => ids.includes(id)),
    }));
}

/** The others never tell of a loss: redlock 4 renews nothing by itself, and Redisson has no such signal. */
const isRenewing = (library: Library): library is Renewing =>
  library !== "java-lock" && library !== "redlock4";

const librariesHere = (java: boolean): Library[] =>
  (Object.keys(TITLES) as Library[]).filter((library) => library !== "java-lock" || java);

/**
 * Measures and prints the figures of the README's comparison: those scenarios, and what a holder
 * and a caller are told when something goes wrong. `dir`: where they are saved; null: nowhere.
 *
 * @returns false when Holdfast had trouble
 */
export async function makeTable(chosen: readonly Scenario[], run: Run, dir: string | null): Promise<boolean> {
  const libraries = librariesHere(run.javaTrouble === null);
  const watched = await watchMachine(run.redis);
  const results: ScenarioResult[] = [];
  for (const scenario of chosen) results.push(await runScenario(scenario, run));
  run.progress.clear();
  const rows = [...scenarioRows(results, libraries), ...(await trialRows(run, libraries))];

  const titles = libraries.map((library) => TITLES[library]);
  print(`| measured | ${titles.join(" | ")} |`);
  print(`|---|${titles.map(() => "---|").join("")}`);
  for (const one of rows) print(line(one));
  print();
  print(`Medians of ${run.rounds} rounds, warm. In brackets: how many times Holdfast's figure it is.`);
  const floor = entriesOf(results, "uncontended").find(({ id }) => id === FLOOR);
  const figures = floor && loadOf(floor);
  if (figures) print(`Two scripts that do nothing, on the same connection: ${short(pair(figures))} µs.`);
  if (run.javaTrouble !== null) print(`Redisson is left out: ${run.javaTrouble}.`);
  const busy = await watched();
  if (busy !== null) print(`${describeBusy(busy)}: measure it again. Nothing is saved.`);
  else if (dir !== null) {
    const about = "The README's comparison, by round. Null: no answer within 30 s.";
    const { seed, machine } = run;
    await saveTable(dir, { about, seed, machine, busy, libraries: titles, rows });
  }
  const ours = results.flatMap(({ entries }) => entries).filter(({ id }) => id === "lock");
  return ours.every(({ trouble }) => trouble.length === 0);
}

const entriesOf = (results: readonly ScenarioResult[], name: string) =>
  results.find(({ scenario }) => scenario === name)?.entries ?? [];

/** µs of an acquisition and its release. */
const pair = ({ perSecond }: LoadFigures): number => 1_000_000 / perSecond;

function scenarioRows(results: readonly ScenarioResult[], libraries: readonly Library[]): Row[] {
  const each = (name: string, value: (figures: LoadFigures) => number | null): Figure[] =>
    libraries.map((library) => {
      const rounds = entriesOf(results, name).find(({ id }) => id === library)?.rounds ?? [];
      return rounds.flatMap((round) => (round.is === "load" ? [value(round)] : []));
    });
  return [
    row(
      "handOff",
      each("wake-up", ({ handoffMedian }) => handoffMedian),
    ),
    row(
      "turns",
      each("hot-4x4", ({ jain }) => jain),
    ),
    row(
      "longestWait",
      each("hot-4x4", ({ waitMax }) => waitMax),
    ),
    row("pair", each("uncontended", pair)),
  ];
}

async function trialRows(run: Run, libraries: readonly Library[]): Promise<Row[]> {
  const losses = new Map<Library, (number | null)[]>();
  const gone: (number | null)[][] = [];
  const hanging: (number | null)[][] = [];
  for (let round = 0; round < run.rounds; round++) {
    for (const library of libraries)
      if (isRenewing(library))
        losses.set(library, [...(losses.get(library) ?? []), await timeToLoss(library, run.signal)]);
    gone.push(await timesToError(libraries, "gone", run.signal));
    hanging.push(await timesToError(libraries, "hangs", run.signal));
  }
  const each = (rounds: (number | null)[][]): Figure[] =>
    libraries.map((_, i) => rounds.map((round) => round[i] ?? null));
  return [
    row(
      "loss",
      libraries.map((library) => losses.get(library) ?? "never"),
    ),
    row("gone", each(gone)),
    row("hangs", each(hanging)),
  ];
}
