import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type Assignment, runCrew } from "./crew/crew.ts";
import type { Player, WarmUp } from "./crew/player.ts";
import { loadFigures } from "./figures/load.ts";
import type { Figures } from "./figures/result.ts";
import { stillFigures } from "./figures/still.ts";
import { serverState, wipe } from "./redis/server-state.ts";
import type { Scenario } from "./scenarios/scenario.ts";

/** Until the server has closed the connections of those who ran before, ms. */
const REST = 200;

const TURNS_WARM_UP = 3_000;

/** What a round needs besides its scenario and its contender. */
export interface Stage {
  readonly redis: Redis;
  readonly url: string;
  readonly seed: number;
  /** A factor for the contender's warm-up. */
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
  const { load, duration, processes } = scenario;
  await wipe(redis);
  await delay(REST, undefined, { signal });

  const assignment: Assignment = {
    program: player.program,
    processes,
    job: { contender: player.contender, library: player.library, url, seed },
    warmUp: warmUpOf(scenario, player.warmUp, stage.warmUp),
    task: { load, duration },
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
  const { warmedUp, reports, began } = await runCrew("done", assignment, async () => {
    before = await serverState(redis);
  });
  const after = await serverState(redis);
  return loadFigures(reports, load, {
    warmedUp,
    room: player.room,
    from: began,
    until: load.times === null ? began + duration * 1_000 : Number.POSITIVE_INFINITY,
    redisCpu: after.cpu - before.cpu,
    redisWrites: after.writes - before.writes,
    commands: player.countAtServer?.(before.calls, after.calls) ?? null,
  });
}

/** The scenario's own load without its pauses. */
function warmUpOf(
  { isCold, load, processes }: Scenario,
  { acquisitions, ms }: WarmUp,
  factor: number,
): Assignment["warmUp"] {
  if (isCold || load.is !== "load") return null;
  // They keep their turns, or they would learn what is not so.
  if (load.turns) {
    const turns = { ...load.turns, every: load.turns.every / 2 };
    return { load: { ...load, turns }, duration: TURNS_WARM_UP * factor };
  }
  const times = acquisitions === null ? null : Math.ceil((acquisitions * factor) / load.tasks);
  return {
    load: { ...load, hold: 0, think: 0, times },
    duration: ms(processes) * factor,
  };
}
