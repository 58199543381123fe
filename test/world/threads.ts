import { once } from "node:events";
import { join, resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { Effects } from "./effects.ts";
import { noCounts } from "./run.ts";
import type { Outcome } from "./simulate.ts";

export interface Work {
  /** The folder of the package that is run. */
  readonly root: string;
  /** The virtual length of each run. */
  readonly ms: number;
  /** The folder of the simulation. Default: this tree. */
  readonly world?: string;
}

const TREE = resolve(import.meta.dirname, "../..");
/** In ms: a run that computes for longer never ends. A run takes a few hundred ms. */
const ENDLESS = 120_000;

/** Runs these seeds, one after the other, in a thread of their own. Threads share nothing. */
export async function* runSeeds(work: Work, seeds: Iterable<number>): AsyncGenerator<Outcome> {
  const thread = new Worker(await codeOf(work.world ?? TREE), { eval: true, workerData: work });
  try {
    for (const seed of seeds) {
      thread.postMessage(seed);
      yield (await answerOf(thread)) ?? endless(seed);
    }
  } finally {
    await thread.terminate();
  }
}

/** thread.ts in one piece: Node.js 20 does not run TypeScript. */
async function codeOf(world: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(world, "test/world/thread.ts")],
    bundle: true,
    write: false,
    platform: "node",
    format: "iife",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  return outputFiles[0]?.text ?? "";
}

/** null: it has no answer, and will have none. @throws what the thread throws */
async function answerOf(thread: Worker): Promise<Outcome | null> {
  try {
    const [outcome] = await once(thread, "message", { signal: AbortSignal.timeout(ENDLESS) });
    return outcome as Outcome;
  } catch (error) {
    if ((error as Error).name === "AbortError") return null;
    throw error;
  }
}

const endless = (seed: number): Outcome => ({
  seed,
  hasFaults: seed % 2 === 0,
  failure: `the run never ends: it computed for ${ENDLESS / 1_000} s`,
  hash: "",
  story: [],
  took: 0,
  events: 0,
  commands: 0,
  counts: noCounts(),
  effects: new Effects(),
});
