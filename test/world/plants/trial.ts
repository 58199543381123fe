import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { Effects, missing } from "../effects.ts";
import type { Outcome } from "../simulate.ts";
import { copyWith } from "./copy.ts";
import type { Plant } from "./plant.ts";

export interface Task {
  readonly root: string;
  readonly seeds: readonly number[];
  readonly ms: number;
}

export type Played = Pick<Outcome, "seed" | "hasFaults" | "failure" | "effects">;

/**
 * The promise that the last of these runs broke; or what did not happen in any of them; null: all is
 * well.
 */
export function failureOf(played: readonly Played[]): string | null {
  const broken = played.find(({ failure }) => failure !== null);
  if (broken) return broken.failure;
  const effects = missing(played);
  return played.filter(({ hasFaults }) => hasFaults).length < ENOUGH || effects.length === 0
    ? null
    : `nothing of this happened: ${effects.join(", ")}`;
}

/** So many seeds with faults have every effect of a fault. */
const ENOUGH = 10;

/** In ms of virtual time: of each run. */
const LENGTH = 30_000;
/** In ms: a run that computes for longer never ends. A run takes a few hundred ms. */
const ENDLESS = 120_000;

/** Runs these seeds with this bug, until one fails; null: without a bug. Two threads share nothing. */
export async function play(plant: Plant | null, seeds: readonly number[]): Promise<Played[]> {
  await using copy = await copyWith(plant);
  const { root } = copy;
  const outfile = join(root, "worker.mjs");
  await build({
    entryPoints: [join(root, "test/world/plants/worker.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  const workerData: Task = { root, seeds, ms: LENGTH };
  const worker = new Worker(outfile, { workerData });
  const played: Played[] = [];
  return await new Promise((resolve, reject) => {
    const done = (): void => {
      clearTimeout(watch);
      void worker.terminate().then(() => resolve(played));
    };
    const isEndless = (): void => {
      const seed = seeds[played.length] ?? 0;
      const failure = `the run never ends: it computed for ${ENDLESS / 1_000} s`;
      played.push({ seed, hasFaults: seed % 2 === 0, failure, effects: new Effects() });
      done();
    };
    let watch = setTimeout(isEndless, ENDLESS);
    worker.on("message", (one: Played) => {
      played.push(one);
      clearTimeout(watch);
      watch = setTimeout(isEndless, ENDLESS);
    });
    worker.on("exit", done);
    worker.on("error", reject);
  });
}
