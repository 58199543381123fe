import { once } from "node:events";
import { Redis } from "ioredis";
import { commandCalls } from "../../tools/redis/command-calls.ts";
import { runCrew } from "../crew/crew.ts";
import type { Player } from "../crew/player.ts";
import { LOAD } from "../scenarios/scenario.ts";

/** What the server needs for one acquisition and its release. */
export interface ScriptTime {
  /** CPU time of its main thread, µs. */
  readonly micros: number;
  /** Commands that scripts call, or that were sent without a script. */
  readonly calls: number;
}

const WARM_UP = 200;
/** Acquisitions that are recorded. Few: after some seconds Holdfast's commands are refused as too late. */
const RECORDED = 1_000;
const REPLAYS = 9;
/** Commands in a pipeline. */
const PIPELINE = 200;
const WITHIN = 30_000;

/**
 * Records what a contender sends, and sends it again in pipelines on one connection to an emptied server: only there do
 * differences of half a µs show. The smallest of some replays.
 *
 * @param callers 1: the lock is free each time; more: nearly every acquisition is a hand-off; "writer": one, which wants to be
 *   alone
 */
export async function scriptTime(
  url: string,
  player: Player,
  callers: number | "writer",
): Promise<ScriptTime> {
  const redis = new Redis(url);
  const subscriber = new Redis(url);
  try {
    const { commands, channels } = await record(redis, url, player, callers);
    // Somebody must hear the grants, or they are not made.
    if (channels.length > 0) await subscriber.subscribe(...channels);
    let least: ScriptTime = { micros: Number.POSITIVE_INFINITY, calls: 0 };
    for (let i = 0; i < REPLAYS; i++) {
      const replayed = await replay(redis, commands);
      if (replayed.micros < least.micros) least = replayed;
    }
    return least;
  } finally {
    redis.disconnect();
    subscriber.disconnect();
  }
}

type Command = [name: string, ...args: string[]];

async function record(
  redis: Redis,
  url: string,
  player: Player,
  callers: number | "writer",
): Promise<{ commands: readonly Command[]; channels: readonly string[] }> {
  const listener = new Redis(url);
  const monitor = await listener.monitor();
  const commands: Command[] = [];
  const channels: string[] = [];
  monitor.on("monitor", (_time: string, [name = "", ...args]: string[], source: string) => {
    if (/^s?subscribe$/i.test(name)) channels.push(...args);
    else if (/^flushall$/i.test(name)) commands.length = 0;
    else if (/^echo$/i.test(name)) monitor.emit("end of recording");
    else if (source !== "lua") commands.push([name, ...args]);
  });
  const task = (acquisitions: number) => ({
    load:
      callers === "writer"
        ? { ...LOAD, tasks: 0, writer: 0, times: acquisitions }
        : { ...LOAD, tasks: callers, times: acquisitions / callers },
    duration: WITHIN,
  });
  try {
    await redis.flushall();
    const assignment = {
      program: player.program,
      processes: 1,
      job: { contender: player.contender, library: player.library, url, seed: 1 },
      warmUp: task(WARM_UP),
      task: task(RECORDED),
      signal: AbortSignal.timeout(2 * WITHIN),
      onProgress: () => {},
    };
    // Its scripts stay, and their recording begins.
    await runCrew("done", assignment, async () => void (await redis.flushall()));
    const ended = once(monitor, "end of recording");
    await redis.echo("");
    await ended;
    // A copy: the replays flush too, and the monitor may hear of it.
    return { commands: [...commands], channels };
  } finally {
    monitor.disconnect();
    listener.disconnect();
  }
}

async function replay(redis: Redis, commands: readonly Command[]): Promise<ScriptTime> {
  await redis.flushall();
  const before = await usage(redis);
  for (let at = 0; at < commands.length; at += PIPELINE) {
    const replies = await redis.pipeline(commands.slice(at, at + PIPELINE)).exec();
    for (const [error] of replies ?? []) if (error) throw error;
  }
  const after = await usage(redis);
  return { micros: (after.cpu - before.cpu) / RECORDED, calls: (after.calls - before.calls) / RECORDED };
}

/** CPU time of the main thread in µs, and calls of commands but those that run scripts. */
async function usage(redis: Redis): Promise<{ cpu: number; calls: number }> {
  const info = await redis.info("everything");
  const seconds = (key: string): number => Number(new RegExp(`^${key}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);
  const cpu = seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread");
  let calls = 0;
  for (const [name, count] of commandCalls(info)) if (!/^(evalsha|info)$/.test(name)) calls += count;
  return { cpu: cpu * 1_000_000, calls };
}
