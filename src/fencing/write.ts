import { FencedWriteError, StaleTokenError } from "../api/errors.ts";
import type { ClusterLike, NodeRedisLike, RedisArgument, RedisLike } from "../api/redis.ts";
import { FENCE_SKEW } from "../defaults.ts";
import { hasOneSlotPerLock } from "../redis/keys.ts";
import type { Script } from "../redis/script.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import { quote } from "../util/quote.ts";
import { TIMER_MAX } from "../util/timers.ts";
import { checkConnection, type FenceTerms } from "./options.ts";

/** A script that begins with the check of lua/fencing/check.lua, and its arguments. */
export interface FencedWrite {
  /** The start of every message: "Cannot write 'order:42'". */
  readonly what: string;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/** By prefix, for each connection. */
const known = new WeakMap<object, Map<string, ScriptRunner>>();

/**
 * Runs a script if the token passes the fence of its resource.
 *
 * @throws RangeError when the keys and the fence have different slots; StaleTokenError; FencedWriteError.
 */
export async function write(
  redis: RedisLike | ClusterLike | NodeRedisLike,
  { what, script, keys, args }: FencedWrite,
  { token, lockName, resource, prefix, remember, replyTimeout }: FenceTerms,
): Promise<unknown> {
  const commands = commandsOf(what, redis, prefix);
  const fence = fenceOf(what, commands, keys, resource);
  const [memory, ttl] = Number.isFinite(remember) ? [remember, remember + FENCE_SKEW] : [0, 0];
  try {
    const all = [...args, `${token} ${memory} ${ttl}`];
    return await commands.runRaw(script, [...keys, fence], all, replyTimeout);
  } catch (error) {
    const [, seen] = /^STALETOKEN (\d+)/.exec(error instanceof Error ? error.message : "") ?? [];
    if (seen === undefined) throw new FencedWriteError(lockName, resource, error);
    throw new StaleTokenError(lockName, resource, token, Number(seen) || null);
  }
}

function commandsOf(
  what: string,
  redis: RedisLike | ClusterLike | NodeRedisLike,
  prefix: string,
): ScriptRunner {
  const prefixed = known.get(redis) ?? new Map<string, ScriptRunner>();
  known.set(redis, prefixed);
  const commands = prefixed.get(prefix) ?? new ScriptRunner(checkConnection(what, redis), TIMER_MAX, prefix);
  prefixed.set(prefix, commands);
  if (commands.isCluster && !hasOneSlotPerLock(commands.keys.prefix)) {
    throw new TypeError(
      `${what}: with the prefix ${quote(commands.keys.prefix)} a key and its fence have different hash slots; use one without "{}"`,
    );
  }
  return commands;
}

/** A Cluster refuses a script whose keys have different slots, with a message of its own. */
function fenceOf(
  what: string,
  { keys: names, isCluster }: ScriptRunner,
  keys: readonly string[],
  resource: string,
): string {
  const far = isCluster && keys.find((key) => names.slot(key) !== names.slot(resource));
  if (typeof far === "string") {
    throw new RangeError(
      `${what}: in Cluster the key ${quote(far)} must have the hash slot of the resource ${quote(resource)}; give both the same {tag}`,
    );
  }
  return names.fence(resource);
}
