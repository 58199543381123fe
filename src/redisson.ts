import type { LockClient } from "./api/client.ts";
import type { UnfencedLease } from "./api/lease.ts";
import type { Lock } from "./api/lock.ts";
import { neverKept, PASSING, type PassingOptions } from "./api/options.ts";
import { checkReentrance, REENTRANCE, type ReentranceOptions } from "./api/reentrance.ts";
import { checkName, checkOptions } from "./api/validate.ts";
import { insideOf, perClient } from "./inside.ts";
import { quote } from "./util/quote.ts";
import { checkFitsRedisson, RedissonKind } from "./wires/redisson.ts";

const RULES = {
  ...PASSING,
  ...REENTRANCE,
  linger: neverKept("a redissonLock is not cached, because Java could not recall it"),
};

const kindsOf = perClient(({ commands, replication, settings }) => ({
  // Java shares this lock, and every local hand-off delays its turn: of one busy lock Java had 1.9
  // % of the holds with local hand-offs, and 46 % without.
  plain: new RedissonKind(commands, replication, false, settings.localHandoffs ?? 0),
  // Every holder needs its own token, and only Redis has the next one.
  fenced: new RedissonKind(commands, replication, true, 0),
}));

/**
 * Redisson's plain `RLock`, to share a lock with Java services: its keys, channel and messages. Its
 * leases have no fencing token. It has no local hand-offs unless `localHandoffs` asks for them,
 * because Java would wait longer.
 *
 * @param locks a client of `createLockClient`.
 * @throws TypeError or RangeError for another client, a bad name or bad options; RangeError in
 *   Cluster also for names such as `a{b`, which Redisson can lock there but not unlock.
 * @example
 * import { redissonLock } from "holdfast/redisson";
 * await redissonLock(locks, "orders").withLock(() => charge(order)); // getLock("orders") in Java
 */
export function redissonLock(
  locks: LockClient,
  name: string,
  options?: PassingOptions & ReentranceOptions,
): Lock<UnfencedLease> {
  const inside = insideOf(locks, "redissonLock(locks, name)");
  checkFitsRedisson(inside.commands.keys, checkName(name));
  const { localHandoffs, reentrant } = checkOptions("Cannot create a lock", RULES, options);
  return inside.lockOf(name, kindsOf(inside).plain, { passes: localHandoffs, linger: 0, reentrant });
}

/**
 * Redisson's `RFencedLock`, to share a lock and its fencing tokens with Java services. The token is
 * Redisson's counter: it grows with every change of holder, on both sides, and starts again at 1 if
 * Redis loses it. Java also raises it on re-entry; here the token stays. It has the same key as
 * `redissonLock(locks, name)`: use one of them for a name.
 *
 * @param locks a client of `createLockClient`.
 * @throws TypeError, RangeError as `redissonLock`; TypeError for other options than `reentrant`,
 *   because every holder needs the next token from Redis, and for a client with a `prefix` or a
 *   connection with a `keyPrefix`, with which Java would not find the counter.
 * @example
 * import { redissonFencedLock } from "holdfast/redisson";
 * const lock = redissonFencedLock(locks, "orders"); // getFencedLock("orders") in Java
 * await lock.withLock((lease) => charge(order, { fence: lease.token }));
 */
export function redissonFencedLock(locks: LockClient, name: string, options?: ReentranceOptions): Lock {
  const inside = insideOf(locks, "redissonFencedLock(locks, name)");
  const { reentrant } = checkReentrance(
    options,
    "every holder of a redissonFencedLock needs the next token from Redis",
  );
  const { keys } = inside.commands;
  checkFitsRedisson(keys, checkName(name));
  if (keys.prefix !== "")
    throw new TypeError(
      `Cannot create a lock: with the prefix ${quote(keys.prefix)} Java would not find the token counter of ${quote(name)}; write the prefix into the name, with a client and a connection without one`,
    );
  return inside.lockOf(name, kindsOf(inside).fenced, { linger: 0, reentrant });
}
