import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { commandCalls } from "../../tools/redis/command-calls.ts";

/** What the server says of itself at one moment. */
export interface ServerState {
  /** CPU time in µs, of all its threads. */
  readonly cpu: number;
  /** Writes to its clients' sockets; 0 before Redis 7. */
  readonly writes: number;
  /** Calls of each command since the statistics were reset, those inside scripts included. */
  readonly calls: ReadonlyMap<string, number>;
}

export async function serverState(redis: Redis): Promise<ServerState> {
  const info = await redis.info("everything");
  const number = (key: string): number => Number(new RegExp(`^${key}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);
  const cpu = (number("used_cpu_user") + number("used_cpu_sys")) * 1_000_000;
  return { cpu, writes: number("total_writes_processed"), calls: commandCalls(info) };
}

/** ms between two looks, and for how long: the processes that had the other connections are gone. */
const LOOK = { every: 10, within: 10_000 };

/**
 * Resolves when the server has closed the connections of those who ran before. @throws Error when
 * it does not
 */
export async function alone(redis: Redis, signal: AbortSignal): Promise<void> {
  const until = performance.now() + LOOK.within;
  while (!/^connected_clients:1\r$/m.test(await redis.info("clients"))) {
    if (performance.now() > until) throw new Error("Redis still has connections of those who ran before");
    await delay(LOOK.every, undefined, { signal });
  }
}

/** Empty, and with its statistics at zero, as for the first contender. */
export async function wipe(redis: Redis): Promise<void> {
  await redis.flushall();
  await redis.config("RESETSTAT");
}

export async function serverVersion(redis: Redis): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await redis.info("server"))?.[1] ?? "unknown";
}
