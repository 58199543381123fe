/**
 * npm run bench: every contender in every scenario, in alternating rounds; then tables, results and
 * charts.
 */
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { findRedis } from "../tools/redis/index.ts";
import { buildCommit } from "./against.ts";
import { readCommandLine, type Wishes } from "./command-line.ts";
import { OURS } from "./contenders/ids.ts";
import { buildWorker } from "./crew/java.ts";
import type { Entry } from "./figures/result.ts";
import { describeMachine } from "./machine.ts";
import { wipe } from "./redis/server-state.ts";
import { drawCharts } from "./report/draw-charts.ts";
import { Progress } from "./report/progress.ts";
import { loadScenarios, loadTable, saveScenario } from "./report/results.ts";
import { printScenario } from "./report/table.ts";
import { type Run, runScenario } from "./run.ts";
import { makeTable } from "./table/make-table.ts";

// From build/benchmarks to the sources.
const HERE = fileURLToPath(new URL("../../", import.meta.url));

/** A peer may fail; these may not. */
const SOUND = [...OURS, "floor-pair", "floor-hop", "floor-hop-and-ask", "principle"];

async function bench(wishes: Wishes, signal: AbortSignal): Promise<boolean> {
  // Every round begins with FLUSHALL: only a server of our own will do.
  delete process.env.REDIS_URL;
  const server = await findRedis();
  const redis = new Redis(server.url);
  const other = wishes.against === null ? null : buildCommit(wishes.against);
  try {
    const turns = wishes.scenarios.reduce(
      (sum, { contenders, slices }) => sum + contenders.length * wishes.rounds * slices,
      0,
    );
    const run: Run = {
      redis,
      url: server.url,
      seed: wishes.seed,
      rounds: wishes.rounds,
      before: wishes.before,
      signal,
      profile: wishes.profile,
      other,
      progress: new Progress(turns),
      machine: await describeMachine(redis),
      javaTrouble: wishes.java ? buildWorker() : "not asked for",
    };
    if (wishes.table) return await makeTable(wishes.scenarios, run, wishes.save ? `${HERE}results` : null);
    let fine = true;
    for (const scenario of wishes.scenarios) {
      const result = await runScenario(scenario, run);
      run.progress.clear();
      printScenario(result);
      // What was saved before is better than this.
      if (wishes.save && result.busy === null) await saveScenario(`${HERE}results`, result);
      fine &&= result.entries.every((entry) => !SOUND.includes(entry.id) || isSound(entry));
    }
    for (const fleet of wishes.fleets) {
      await wipe(redis);
      fine = (await fleet.measure(server.url, wishes.seed, signal)) && fine;
    }
    if (wishes.save)
      await drawCharts(
        `${HERE}charts`,
        await loadScenarios(`${HERE}results`),
        await loadTable(`${HERE}results`),
      );
    return fine;
  } finally {
    other?.remove();
    redis.disconnect();
    await server.stop();
  }
}

/** Nothing has failed, and no caller was inside with one that wanted to be without it. */
const isSound = ({ trouble, rounds }: Entry): boolean =>
  trouble.length === 0 && rounds.every((round) => round.is !== "load" || round.overlaps === 0);

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => interruption.abort(new Error(`Interrupted by ${signal}`)));

try {
  const wishes = readCommandLine(process.argv.slice(2));
  if (wishes && !(await bench(wishes, interruption.signal))) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
}
