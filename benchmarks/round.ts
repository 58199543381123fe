import type { Redis } from "ioredis";
import { type Assignment, runCrew } from "./crew/crew.ts";
import type { Player, WarmUp } from "./crew/player.ts";
import { loadFigures } from "./figures/load.ts";
import type { Figures } from "./figures/result.ts";
import { stillFigures } from "./figures/still.ts";
import { alone, serverState, wipe } from "./redis/server-state.ts";
import { LOAD, type Scenario } from "./scenarios/scenario.ts";

const TURNS_WARM_UP = 3_000;
/**
 * ms for which so many processes run cold: on two cores enough for the first 2 000 acquisitions of
 * each, but not for those of 32 processes.
 */
const cold = (processes: number): number => Math.min(12_000, Math.max(2_500, 1_000 * processes));

/** What a round needs besides its scenario and its contender. */
export interface Stage {
  readonly redis: Redis;
  readonly url: string;
  readonly seed: number;
  /** A factor for the time in which processes run cold, and for the contender's warm-up. */
  readonly before: number;
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
  await alone(redis, signal);
  await wipe(redis);

  const assignment: Assignment = {
    program: player.program,
    processes,
    job: { contender: player.contender, library: player.library, url, seed },
    cold: load.is === "load" ? { load, duration: cold(processes) * stage.before } : null,
    warmUp: warmUpOf(scenario, player.warmUp, stage.before),
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
  const {
    cold: begun,
    warmedUp,
    reports,
    began,
  } = await runCrew("done", assignment, async () => {
    before = await serverState(redis);
  });
  const after = await serverState(redis);
  return loadFigures(reports, load, {
    cold: begun,
    warmedUp,
    room: player.room,
    from: began,
    until: load.times === null ? began + duration * 1_000 : Number.POSITIVE_INFINITY,
    redisCpu: after.cpu - before.cpu,
    redisWrites: after.writes - before.writes,
    commands: player.countAtServer?.(before.calls, after.calls) ?? null,
  });
}

/** The scenario's own load without its pauses; where callers stand still, one caller of a free lock. */
function warmUpOf(scenario: Scenario, { acquisitions, ms }: WarmUp, factor: number): Assignment["warmUp"] {
  const { processes } = scenario;
  const load = scenario.load.is === "load" ? scenario.load : LOAD;
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
