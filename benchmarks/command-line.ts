import { parseArgs } from "node:util";
import { idAt, OURS } from "./contenders/ids.ts";
import { fleetsOf } from "./fleets/all.ts";
import type { Fleet } from "./fleets/fleet.ts";
import { scenarios } from "./scenarios/all.ts";
import type { Scenario } from "./scenarios/scenario.ts";
import { tableScenarios } from "./table/make-table.ts";

/** What this run is to do. */
export interface Wishes {
  readonly scenarios: readonly Scenario[];
  /** What is measured by processes of its own, with its size. */
  readonly fleets: readonly Fleet[];
  readonly rounds: number;
  readonly seed: number;
  readonly save: boolean;
  /** A factor for the time in which processes run cold, and for every contender's warm-up. */
  readonly before: number;
  /** Is there anything for Java to do? It is compiled before. */
  readonly java: boolean;
  /** The figures of the README's table, and nothing else. */
  readonly table: boolean;
  /** A commit whose Holdfast takes part beside the present one; null: none. */
  readonly against: string | null;
  /** Where CPU profiles go; null: none are made. */
  readonly profile: string | null;
}

const HELP = `npm run bench -- [options]

  --scenario <name>    only this one; may be given again; a * stands for anything
  --contender <id>     only this one, besides the floors; may be given again
  --against <commit>   Holdfast as that commit has it takes part too, in the same rounds; nothing is saved
  --rounds <n>         rounds of each contender (3)
  --seconds <n>        how long \`once\` runs (60)
  --kills <n>          how many leaders of \`election\` are killed (20)
  --seed <n>           of all that is random
  --quick              one short round of everything, to see that it works; nothing is saved
  --table              measures the figures of the README's comparison with other libraries: about ten minutes
  --charts             measures nothing, and draws the charts of the saved results again
  --profile <dir>      writes a CPU profile of every Node worker there
  --no-save            prints, and leaves results and charts as they are
  --list               the names of scenarios and contenders`;

const QUICK = 200;
const QUICK_BEFORE = 0.03;
const QUICK_FLEETS = { seconds: 3, kills: 1 };
const JAVA = /^java-/;
/** They always take part: without them the figures of the others say little. */
const FLOORS = /^floor-|^principle$/;

/** Null: it was a question, and is answered. @throws Error for a name that is not known */
export function readCommandLine(args: readonly string[]): Wishes | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: "string", multiple: true, default: ["*"] },
      contender: { type: "string", multiple: true, default: ["*"] },
      against: { type: "string" },
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "60" },
      kills: { type: "string", default: "20" },
      seed: { type: "string", default: `${Date.now() % 1_000_000}` },
      quick: { type: "boolean", default: false },
      table: { type: "boolean", default: false },
      charts: { type: "boolean", default: false },
      profile: { type: "string" },
      "no-save": { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help || values.list) {
    process.stdout.write(`${values.help ? HELP : list()}\n`);
    return null;
  }
  const chosen = (values.table ? tableScenarios(!values.quick) : scenarios)
    .filter(({ name }) => matches(name, values.scenario))
    .map((scenario) => narrow(scenario, values.contender))
    .map((scenario) => (values.against ? join(scenario, values.against) : scenario))
    .filter(({ contenders }) => contenders.length > 0);
  const sizes = values.quick
    ? QUICK_FLEETS
    : { seconds: atLeast(1, values.seconds), kills: atLeast(1, values.kills) };
  const isAlone = values.table || values.charts || values.against !== undefined;
  const fleets = (isAlone ? [] : fleetsOf(sizes)).filter(
    ({ name }) => matches(name, values.scenario) && matches(name, values.contender),
  );
  if (chosen.length === 0 && fleets.length === 0)
    throw new Error(`Nothing to do: no such scenario or contender. There are:\n${list()}`);
  return {
    scenarios: values.charts ? [] : values.quick ? chosen.map(hurry) : chosen,
    fleets,
    rounds: values.quick ? 1 : atLeast(1, values.rounds),
    seed: Number(values.seed),
    save: chosen.length > 0 && !values.quick && !values["no-save"] && values.against === undefined,
    before: values.quick ? QUICK_BEFORE : 1,
    java: !values.quick && (values.table || chosen.some(hasJava)),
    table: values.table,
    against: values.against ?? null,
    profile: values.profile ?? null,
  };
}

const atLeast = (least: number, value: string): number => Math.max(least, Number(value));

const hasJava = ({ contenders }: Scenario): boolean => contenders.some((id) => JAVA.test(id));

function narrow(scenario: Scenario, wanted: readonly string[]): Scenario {
  const isWanted = (id: string): boolean => FLOORS.test(id) || matches(id, wanted);
  return { ...scenario, contenders: scenario.contenders.filter(isWanted) };
}

/** That commit's Holdfast beside each of the present ones. */
function join(scenario: Scenario, commit: string): Scenario {
  const both = (id: string): string[] => (OURS.includes(id) ? [id, idAt(id, commit)] : [id]);
  return { ...scenario, contenders: scenario.contenders.flatMap(both) };
}

/** A tenth of the size, and hardly any time. */
function hurry(scenario: Scenario): Scenario {
  const { load } = scenario;
  if (load.is === "load") return { ...scenario, slices: 1, ...(load.times === null && { duration: QUICK }) };
  return { ...scenario, load: { ...load, callers: load.callers / 10, watch: QUICK } };
}

function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    new RegExp(`^${pattern.replace(/[^\w*-]/g, "\\$&").replaceAll("*", ".*")}$`).test(name),
  );
}

function list(): string {
  const names = [...new Set(scenarios.flatMap(({ contenders }) => contenders))];
  return [
    "scenarios:",
    ...[...scenarios, ...fleetsOf(QUICK_FLEETS)].map(({ name, about }) => `  ${name.padEnd(18)} ${about}`),
    "contenders:",
    ...names.map((name) => `  ${name}`),
  ].join("\n");
}
