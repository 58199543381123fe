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

/** Empty, and with its statistics at zero, as for the first contender. */
export async function wipe(redis: Redis): Promise<void> {
  await redis.flushall();
  await redis.config("RESETSTAT");
}

export async function serverVersion(redis: Redis): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await redis.info("server"))?.[1] ?? "unknown";
}
