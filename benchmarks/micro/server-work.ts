import { once } from "node:events";
import { Redis } from "ioredis";
import { commandCalls } from "../../tools/redis/command-calls.ts";
import { runCrew } from "../crew/crew.ts";
import type { Player } from "../crew/player.ts";
import { LOAD } from "../scenarios/scenario.ts";
import type { Load } from "../workers/protocol.ts";
import type { Meter } from "./meter.ts";

/** What the server needs for one acquisition and its release. */
export interface ServerWork {
  /** In the meter's unit. */
  readonly cost: number;
  /** Commands that scripts call, or that were sent without a script. */
  readonly calls: number;
}

const WARM_UP = 200;
/** Commands in a pipeline. */
const PIPELINE = 200;
const WITHIN = 60_000;
/**
 * The part by which a replay may differ from its recording in commands, which are also those of
 * re-checks.
 */
const ALIKE = 0.05;
/**
 * Holdfast's commands are refused some seconds after they were made: on a busy machine a replay may
 * be too late.
 */
const ATTEMPTS = 5;

/**
 * Records what a contender sends, and sends it again in pipelines on one connection to an emptied
 * server: what is counted is then the work for these commands, and hardly anything of how they
 * arrive.
 *
 * @param load its callers are those of one process
 * @throws Error when the commands do not do again what they did
 */
export async function serverWork(meter: Meter, player: Player, load: Partial<Load>): Promise<ServerWork> {
  const redis = new Redis(meter.url);
  const subscriber = new Redis(meter.url);
  try {
    // ioredis fails when it hears of a command together with the answer to MONITOR, so these have
    // sent theirs.
    await Promise.all([redis.ping(), subscriber.ping()]);
    for (let attempt = 1; ; attempt++) {
      const { commands, channels, calls } = await record(redis, meter, player, load);
      // A process must listen for the grants, or they are not made.
      if (channels.length > 0) await subscriber.subscribe(...channels);
      const replays: ServerWork[] = [];
      for (let i = 0; i < meter.repeats; i++) replays.push(await replay(redis, meter, commands));
      const odd = replays.find((one) => Math.abs(one.calls - calls) > ALIKE * calls);
      if (!odd) return replays.reduce((least, one) => (one.cost < least.cost ? one : least));
      if (attempt === ATTEMPTS)
        throw new Error(
          `${player.title}: ${calls} commands per acquisition, but ${odd.calls} when they were sent again`,
        );
    }
  } finally {
    redis.disconnect();
    subscriber.disconnect();
  }
}

type Command = [name: string, ...args: string[]];

async function record(
  redis: Redis,
  { url, size }: Meter,
  player: Player,
  load: Partial<Load>,
): Promise<{ commands: readonly Command[]; channels: readonly string[]; calls: number }> {
  const monitor = await redis.monitor();
  const commands: Command[] = [];
  const channels: string[] = [];
  monitor.on("monitor", (_time: string, [name = "", ...args]: string[], source: string) => {
    if (/^s?subscribe$/i.test(name)) channels.push(...args);
    else if (/^flushall$/i.test(name)) commands.length = 0;
    else if (/^echo$/i.test(name)) monitor.emit("end of recording");
    else if (source !== "lua") commands.push([name, ...args.map(unescaped)]);
  });
  const { tasks = 1 } = load;
  const task = (acquisitions: number) => ({
    load: { ...LOAD, ...load, times: acquisitions / Math.max(1, tasks) },
    duration: WITHIN,
  });
  try {
    await redis.flushall();
    const assignment = {
      program: player.program,
      processes: 1,
      job: { contender: player.contender, library: player.library, url, seed: 1 },
      cold: null,
      warmUp: task(WARM_UP),
      task: task(size),
      signal: AbortSignal.timeout(2 * WITHIN),
      onProgress: () => {},
    };
    let before = 0;
    // Its scripts stay, and their recording begins.
    await runCrew("done", assignment, async () => {
      await redis.flushall();
      before = await callsOf(redis);
    });
    const calls = ((await callsOf(redis)) - before) / size;
    const ended = once(monitor, "end of recording");
    await redis.echo("");
    await ended;
    // A copy: the replays flush too, and the monitor may hear of it.
    return { commands: [...commands], channels, calls };
  } finally {
    monitor.disconnect();
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\u0007" };

/**
 * MONITOR escapes what it shows, and ioredis removes only the escapes of quotes. A script is sent by
 * its text when a re-check or a withdrawal needs it for the first time, on a busy machine.
 */
const unescaped = (shown: string): string =>
  shown.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex?: string, one = "") =>
    hex ? String.fromCharCode(Number.parseInt(hex, 16)) : (ESCAPES[one] ?? one),
  );

async function replay(redis: Redis, meter: Meter, commands: readonly Command[]): Promise<ServerWork> {
  await redis.flushall();
  const before = await callsOf(redis);
  const cost = await meter.measure(async () => {
    for (let at = 0; at < commands.length; at += PIPELINE) {
      const replies = await redis.pipeline(commands.slice(at, at + PIPELINE)).exec();
      for (const [error] of replies ?? []) if (error) throw error;
    }
  });
  return { cost: cost / meter.size, calls: ((await callsOf(redis)) - before) / meter.size };
}

/** Calls of commands but those that run scripts. */
async function callsOf(redis: Redis): Promise<number> {
  let calls = 0;
  for (const [name, count] of commandCalls(await redis.info("commandstats")))
    if (!/^(evalsha|info)$/.test(name)) calls += count;
  return calls;
}
