import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type Assignment, runCrew } from "./crew/crew.ts";
import type { Player } from "./crew/players.ts";
import { loadFigures } from "./figures/load.ts";
import type { Figures } from "./figures/result.ts";
import { stillFigures } from "./figures/still.ts";
import { serverState, wipe } from "./redis/server-state.ts";
import type { Scenario } from "./scenarios/scenario.ts";

/** Until the server has closed the connections of those who ran before, ms. */
const REST = 200;

/** What a round needs besides its scenario and its contender. */
export interface Stage {
  readonly redis: Redis;
  readonly url: string;
  readonly seed: number;
  /** ms of load before it counts. */
  readonly warmUp: number;
  readonly signal: AbortSignal;
  readonly onProgress: (acquired: number) => void;
}

/**
 * One contender in one scenario, once, on an empty server.
 *
 * @throws Error when it hangs, or when one of its processes fails
 */
export async function runRound(scenario: Scenario, player: Player, stage: Stage): Promise<Figures> {
  const { redis, url, seed, signal, onProgress } = stage;
  const { load } = scenario;
  await wipe(redis);
  await delay(REST, undefined, { signal });

  const isLoop = load.is === "load" && load.times === null;
  // Many processes do little each, and take longer until their code is compiled.
  const warmUp = isLoop ? stage.warmUp * Math.max(2, scenario.processes) : 0;
  const assignment: Assignment = {
    program: player.program,
    processes: scenario.processes,
    job: { contender: player.id, url, seed, load },
    duration: warmUp + scenario.duration,
    signal,
    onProgress,
  };
  if (load.is !== "load") {
    const { reports } = await runCrew("stood", assignment, async () => {});
    const [stood] = reports;
    if (!stood) throw new Error("nobody reported");
    return stillFigures(stood);
  }

  let before = await serverState(redis);
  const { reports, began } = await runCrew("done", assignment, async () => {
    before = await serverState(redis);
  });
  const after = await serverState(redis);
  const from = began + warmUp * 1_000;
  return loadFigures(reports, load, {
    from: isLoop ? from : 0,
    until: isLoop ? from + scenario.duration * 1_000 : Number.POSITIVE_INFINITY,
    redisCpu: after.cpu - before.cpu,
    commands: player.countAtServer?.(before.calls, after.calls) ?? null,
  });
}
