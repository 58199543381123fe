import type { LockClient } from "./api/client.ts";
import type { UnfencedLease } from "./api/lease.ts";
import type { Lock } from "./api/lock.ts";
import { neverKept, PASSING, type PassingOptions } from "./api/options.ts";
import { REENTRANCE, type ReentranceOptions } from "./api/reentrance.ts";
import { checkName, checkOptions, type Rule } from "./api/validate.ts";
import { LOCAL_HANDOFFS } from "./defaults.ts";
import { insideOf, perClient } from "./inside.ts";
import { SpinKind } from "./wires/spin.ts";

/** How a spin lock is named in Redis, and handed on. */
export interface SpinLockOptions extends PassingOptions, ReentranceOptions {
  /** A prefix for the name, in the key and in `lock.name`. Default: "". */
  prefix?: string | undefined;
}

const RULES = {
  prefix: { wanted: "a string", fits: (value) => typeof value === "string", fallback: "" } as Rule<string>,
  ...PASSING,
  ...REENTRANCE,
  linger: neverKept("a spinLock is not cached, because no process could recall it"),
};

const kindOf = perClient(
  ({ commands, replication, settings }) =>
    new SpinKind(commands, replication, settings.localHandoffs ?? LOCAL_HANDOFFS),
);

/**
 * The lock that most libraries have, `SET key owner NX PX`: for servers without pub/sub, and to
 * share a lock with redis-py, bsm/redislock, redlock on one node, or redis-semaphore
 * (`{ prefix: "mutex:" }`). Waiters try again after 1, 2, 4 … 128 ms; nothing is subscribed. No
 * hand-off, no order, no fencing tokens: prefer `locks.lock()`.
 *
 * @param locks a client of `createLockClient`.
 * @param name the key, 1 to 512 bytes of UTF-8.
 * @throws TypeError or RangeError for another client, a bad name or bad options.
 * @example
 * import { spinLock } from "holdfast/spin";
 * // redis-semaphore's new Mutex(redis, "orders")
 * const lock = spinLock(locks, "orders", { prefix: "mutex:" });
 */
export function spinLock(locks: LockClient, name: string, options?: SpinLockOptions): Lock<UnfencedLease> {
  const inside = insideOf(locks, "spinLock(locks, name)");
  const { prefix, localHandoffs, reentrant } = checkOptions("Cannot create a lock", RULES, options);
  const how = { passes: localHandoffs, linger: 0, reentrant };
  return inside.lockOf(prefix + checkName(name), kindOf(inside), how);
}
