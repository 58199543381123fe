import { rm } from "node:fs/promises";
import { expect, it } from "vitest";
import { tellStory } from "./checker/tell-story.ts";
import { whyNoPorcupine } from "./porcupine/go.ts";
import { judge } from "./porcupine/index.ts";
import { type RunOptions, run } from "./run.ts";
import type { Plant } from "./worker/plants.ts";

export interface Ill {
  readonly plant: Plant;
  /** What the bug needs to show itself. */
  readonly needs: Pick<RunOptions, "seconds" | "only" | "faults" | "taste" | "workers" | "callers" | "drain">;
  /** What is broken by it: all of these. */
  readonly rules: readonly string[];
  /** Porcupine finds it, too. */
  readonly isJudged?: boolean;
}

/** In one short run a bug shows itself with some probability; the least of them does so in more than half of the runs. */
const RUNS = 6;

/** A checker that finds nothing proves nothing: with a bug in every worker, one of a few short runs must show it. `isAtOnce`: beside each other. */
export function finds(topology: RunOptions["topology"], ills: readonly Ill[], isAtOnce = false): void {
  const each = isAtOnce ? it.concurrent.each(ills) : it.each(ills);
  each("$plant", { timeout: RUNS * 120_000 }, async ({ plant, needs, isJudged, rules }) => {
    const obstacle = isJudged ? await whyNoPorcupine() : null;
    if (obstacle !== null) process.stderr.write(`'${plant}' is not shown to Porcupine: ${obstacle}\n`);
    const asks = isJudged === true && obstacle === null;
    const wanted = asks ? [...rules, "linearizable"] : rules;
    const broken = new Set<string>();
    for (let seed = 1; seed <= RUNS && !wanted.every((rule) => broken.has(rule)); seed++) {
      const { violations, events, folder } = await run({
        topology,
        seed,
        workers: 3,
        drain: 8_000,
        // All calls are of locks, where nothing else is wanted: a bug of locks shows itself in fewer runs.
        taste: { shared: 0 },
        ...needs,
        plant,
      });
      const judged = asks ? (await judge(tellStory(events), folder)).violations : [];
      await rm(folder, { recursive: true, force: true });
      for (const { rule } of [...violations, ...judged]) broken.add(rule);
    }
    expect([...broken]).toEqual(expect.arrayContaining([...wanted]));
  });
}
