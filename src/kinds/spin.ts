import { RENEWAL_BATCH, SPIN_MAX, SPIN_MIN, SPIN_SPREAD } from "../defaults.ts";
import type { Replication } from "../redis/replication.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { between } from "../util/random.ts";
import { type LockKind, tell } from "../waiting/lock-kind.ts";
import { SpinScripts } from "./spin-scripts.ts";

/**
 * The lock that everybody knows: SET NX PX under the lock's name, compare-and-delete, and tries with an exponential
 * back-off (Redisson's RSpinLock: 1, 2, 4 … 128 ms). For servers without pub/sub, for sharing a lock with redis-py,
 * bsm/redislock, redlock on one node or redis-semaphore, and for comparison.
 *
 * It has no fencing tokens. An INCR in the script would count only the holders that come through this library: after one
 * of another library, a token would be told that says nothing about the last writer.
 */
export function spinLock(commands: ScriptRunner, replication: Replication | null, passes: number): LockKind {
  const scripts = new SpinScripts(commands, replication);
  return {
    label: "spinLock",
    eventKind: "spin",
    protocol: "spin",
    wake: { by: "time", pause: backOff },
    localPasses: passes,
    attempt: (hold, ask, told) => tell(scripts.acquire(hold.name, hold.id, ask.lease), told),
    withdraw: (hold) => scripts.release(hold.name, hold.id),
    release: (hold, told) => tell(scripts.release(hold.name, hold.id), told),
    yield: null,
    batch: commands.isCluster ? 1 : RENEWAL_BATCH,
    renew: (holds, timeout) =>
      scripts.renewAt(
        holds.map((hold) => ({ ...hold, key: hold.name })),
        timeout,
      ),
    confirm: (hold, ttl, timeout) => scripts.confirmAt(hold.name, hold.name, hold.id, ttl, timeout),
    isConfirmed: replication !== null,
    recount: null,
    together: null,
    inspect: (name) => scripts.inspect(name),
    forceRelease: (name) => scripts.forceRelease(name),
  };
}

/** Before the n-th further try, in ms. Without the spread, processes that began together would try together for ever. */
const backOff = (tries: number): number =>
  Math.min(SPIN_MAX, SPIN_MIN * 2 ** Math.min(tries, 10)) * between(1 - SPIN_SPREAD, 1);
