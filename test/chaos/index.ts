import { rm } from "node:fs/promises";
import type { TopologyName } from "./arenas/arena.ts";
import { type Arguments, readArguments, USAGE } from "./arguments.ts";
import { tellStory } from "./checker/tell-story.ts";
import { excerpt, type Violation } from "./checker/violation.ts";
import { whyNoPorcupine } from "./porcupine/go.ts";
import { type Judgement, judge } from "./porcupine/index.ts";
import { run } from "./run.ts";
import { SOAK_FAULTS, Soak, STEADY } from "./soak/soak.ts";
import { summary } from "./summary.ts";

// Lets things go wrong for a while and checks what became of Holdfast's promises.

/** Most violations follow from others: the first one against each rule says enough. */
const firsts = (violations: readonly Violation[]): Violation[] =>
  violations.filter(({ rule }, index) => violations.findIndex((one) => one.rule === rule) === index);

async function main(): Promise<boolean> {
  const args = readArguments(process.argv.slice(2));
  say(`seed ${args.seed}, ${args.seconds} s, ${args.workers} workers with ${args.callers} callers each`);
  const obstacle = args.porcupine ? await whyNoPorcupine() : null;
  if (obstacle !== null) say(`Porcupine is left out: ${obstacle}`);
  const isJudged = args.porcupine && obstacle === null;
  let isSound = true;
  for (const topology of args.topologies) isSound = (await fight(topology, args, isJudged)) && isSound;
  say(isSound ? `\nNothing was broken (seed ${args.seed}).` : `\nBROKEN (seed ${args.seed}).`);
  return isSound;
}

async function fight(topology: TopologyName, args: Arguments, isJudged: boolean): Promise<boolean> {
  const { seed, workers, callers, shared, plant, only, topologies, keep } = args;
  const seconds = args.seconds / topologies.length;
  say(`\n${topology}, ${seconds.toFixed(0)} s`);
  const soak = args.soak ? new Soak() : null;
  const outcome = await run({
    topology,
    seed,
    seconds,
    workers,
    callers,
    taste: { shared: shared / 100 },
    ...(plant && { plant }),
    ...(soak && { onlooker: soak, steady: STEADY, only: SOAK_FAULTS }),
    ...(only && { only }),
    progress: (state) => {
      const faults = state.faults.length === 0 ? "" : `, now: ${state.faults.join(", ")}`;
      say(`  ${state.seconds.toFixed(0).padStart(5)} s  ${state.grants} grants${faults}`);
    },
  });
  const { events, folder } = outcome;
  const judgement = isJudged ? await judge(tellStory(events), folder) : null;
  const violations = [...outcome.violations, ...(judgement?.violations ?? [])];
  say(summary(outcome));
  if (judgement) say(verdict(judgement));
  const soaked = soak?.report();
  for (const found of soaked?.lines ?? []) say(`  ${found}`);
  for (const broken of soaked?.broken ?? []) say(`  LEFT BEHIND: ${broken}`);
  say(`  violations             ${violations.length}`);
  for (const violation of firsts(violations)) say(`\n${excerpt(violation, events)}`);
  const isKept = keep || violations.length > 0;
  if (isKept) say(`\nhistory: ${folder}`);
  else await rm(folder, { recursive: true, force: true });
  return violations.length === 0 && (soaked?.broken ?? []).length === 0;
}

function verdict({ histories, operations, leftOut, violations, undecided }: Judgement): string {
  const late = undecided.length === 0 ? "" : `, undecided in time: ${undecided.join(", ")}`;
  return `  Porcupine              ${histories} histories of ${operations} operations (${leftOut} leases left out), not linearizable: ${violations.length}${late}`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  const isUsage = error instanceof Error && (error.message.startsWith("--") || "code" in error);
  process.stderr.write(isUsage ? `${(error as Error).message}\n\n${USAGE}\n` : `${(error as Error).stack}\n`);
  process.exitCode = 2;
}
