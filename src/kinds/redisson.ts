import { RENEWAL_BATCH } from "../defaults.ts";
import type { Replication } from "../redis/replication.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { newRedissonId } from "../util/random.ts";
import { type LockKind, tell } from "../waiting/lock-kind.ts";
import { RedissonScripts } from "./redisson-scripts.ts";

/**
 * Redisson's plain lock, key for key and message for message, to share a lock with Java: one release channel for each
 * lock, a broadcast that only says "try again", the holder's TTL as the fallback. It has no fencing tokens, unless
 * `isFenced`: Redisson's fenced lock is the same with a counter beside it.
 *
 * An owner is `<uuid>:<number>`, as in Java, where the number is a thread's; here every hold has its own (R1).
 */
export function redissonLock(
  commands: ScriptRunner,
  replication: Replication | null,
  isFenced: boolean,
  passes: number,
): LockKind {
  const scripts = new RedissonScripts(commands, replication, isFenced);
  const uuid = newRedissonId();
  const owner = (id: string): string => `${uuid}:${id.slice(id.lastIndexOf(":") + 1)}`;
  const channel = (name: string): string => commands.keys.redissonChannel(name);
  return {
    label: isFenced ? "redissonFencedLock" : "redissonLock",
    eventKind: isFenced ? "redissonFenced" : "redisson",
    // Both have the same key. A scope that holds the plain lock has no token to give to a caller that enters the fenced one.
    protocol: isFenced ? "redisson-fenced" : "redisson",
    // Java sees the same owner, entered once, with a TTL: nothing that it could mistake.
    localPasses: passes,
    wake: { by: "message", channel },
    attempt: (hold, ask, told) =>
      tell(scripts.acquire(hold.name, owner(hold.id), ask.lease, channel(hold.name)), told),
    withdraw: (hold) => scripts.release(hold.name, owner(hold.id), channel(hold.name)),
    release: (hold, told) => tell(scripts.release(hold.name, owner(hold.id), channel(hold.name)), told),
    yield: null,
    batch: commands.isCluster ? 1 : RENEWAL_BATCH,
    renew: (holds, timeout) =>
      scripts.renewAt(
        holds.map((hold) => ({ key: hold.name, id: owner(hold.id), ttl: hold.ttl })),
        timeout,
      ),
    confirm: (hold, ttl, timeout) => scripts.confirmAt(hold.name, hold.name, owner(hold.id), ttl, timeout),
    isConfirmed: replication !== null,
    recount: (hold, count) => scripts.recount(hold.name, owner(hold.id), count),
    together: null,
    inspect: (name) => scripts.inspect(name),
    forceRelease: (name) => scripts.forceRelease(name, channel(name)),
  };
}
