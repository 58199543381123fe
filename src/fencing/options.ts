import type { ClusterLike, NodeRedisLike, RedisLike } from "../api/redis.ts";
import {
  anything,
  type Checked,
  checkText,
  isWhole,
  longTime,
  orInfinity,
  PREFIX,
  type Rule,
  refuse,
  time,
} from "../api/validate.ts";
import { FENCE_MEMORY, LEASE_MIN, REPLY_TIMEOUT, TIME_TOKEN_MIN } from "../defaults.ts";
import type { Link } from "../redis/driver.ts";
import { linkTo, noConnection } from "../redis/drivers.ts";

/** How a write is fenced. Times are whole milliseconds. */
export interface FenceOptions {
  /**
   * The token of the lock that protects the resource; or its lease: if that is known to be lost,
   * the write is refused here with LockLostError.
   */
  fence: number | { readonly name: string; readonly token: number; assertHeld(): void };
  /**
   * The name of what is protected: writes with the same name share a highest token. In Cluster it
   * must have the slot of the keys: "{order:42}" for "{order:42}:status". Default: the key, if
   * there is exactly one.
   */
  resource?: string | undefined;
  /**
   * Comes before the keys of the call and the key of the fence, as the lock client's `prefix` does:
   * give both the same. Default: none.
   */
  prefix?: string | undefined;
  /**
   * How long the highest token is remembered after a write, at least 1 000; Infinity: without
   * limit. Default: 86 400 000, a day; without limit if tokens are counters (below 10^15, as those
   * of `redissonFencedLock`). Use the same value in all writers of a resource. Where nothing is
   * remembered, a token older than this is refused: that is safe, but a holder that has held its
   * lock for longer without a write must take the lock again.
   */
  remember?: number | undefined;
  /** How long the write may stay unanswered. Default: 5 000. */
  replyTimeout?: number | undefined;
}

export const FENCE = {
  fence: anything,
  resource: anything,
  prefix: PREFIX,
  remember: orInfinity(longTime(1_000, undefined)),
  replyTimeout: time(LEASE_MIN, REPLY_TIMEOUT),
};

const NONE =
  "is a lease that has no fencing token: permits, spinLock and the plain redissonLock have none; redissonFencedLock has";
const SEVERAL = "is a lease of several locks: give the token of one, lease.tokens.get(name)";

/** Options of a fence, checked and complete. `lockName`: null if only a token was given. */
export type FenceTerms = ReturnType<typeof checkFence>;

/**
 * `key`: the only key; it names the resource if that has no name.
 *
 * @throws also what the lease's `assertHeld()` throws.
 */
export function checkFence(what: string, options: Checked<typeof FENCE>, key: string | undefined) {
  const { resource, prefix, remember, replyTimeout } = options;
  const fence = options.fence as FenceOptions["fence"] | null | undefined;
  const lease = typeof fence === "object" && typeof fence?.assertHeld === "function" ? fence : null;
  const token: unknown = lease ? lease.token : fence;
  if (lease && typeof token !== "number")
    throw new TypeError(`${what}: fence ${"tokens" in lease ? SEVERAL : NONE}`);
  if (!isWhole(token, 1, Number.MAX_SAFE_INTEGER)) {
    const kind = typeof token === "number" ? RangeError : TypeError;
    throw refuse(kind, what, "fence", "a lease or its token, a whole number from 1 to 2^53-1", token);
  }
  if (resource === undefined && key === undefined) {
    const wanted = "the name of what the fence protects, where there is not exactly one key";
    throw refuse(TypeError, what, "resource", wanted, resource);
  }
  const name = checkText(what, "resource", resource ?? key);
  // A forgotten counter would start the comparison anew, and a counter has no age: a late write
  // would be accepted.
  const isCounter = (token as number) < TIME_TOKEN_MIN;
  if (isCounter && remember !== undefined && remember !== Number.POSITIVE_INFINITY)
    throw refuse(RangeError, what, "remember", "Infinity for a token that is a counter", remember);
  lease?.assertHeld();
  return {
    token: token as number,
    lockName: lease?.name ?? null,
    resource: name,
    prefix,
    remember: remember ?? (isCounter ? Number.POSITIVE_INFINITY : FENCE_MEMORY),
    replyTimeout,
  };
}

export function checkConnection(what: string, redis: RedisLike | ClusterLike | NodeRedisLike): Link {
  const link = linkTo(redis);
  if (!link) throw new TypeError(`${what}: redis ${noConnection(redis)}`);
  return link;
}

/** A value for Redis. */
export const ARGUMENT: Rule<undefined> = {
  wanted: "a string, a finite number or a Buffer",
  fits: (value) => typeof value === "string" || Buffer.isBuffer(value) || Number.isFinite(value),
  fallback: undefined,
};
