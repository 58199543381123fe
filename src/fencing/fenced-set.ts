import type { ClusterLike, NodeRedisLike, RedisArgument, RedisLike } from "../api/redis.ts";
import { checkOptions, checkText, checkValue, longTime } from "../api/validate.ts";
import { quote } from "../util/quote.ts";
import { fencingLua } from "./lua.generated.ts";
import { ARGUMENT, checkConnection, checkFence, FENCE, type FenceOptions } from "./options.ts";
import { write } from "./write.ts";

/** How a key is set. Times are whole milliseconds. */
export interface FencedSetOptions extends FenceOptions {
  /**
   * How long the key lives. Default: until it is deleted. As with SET, that also removes an earlier
   * time to live.
   */
  ttl?: number | undefined;
}

/**
 * Sets a key, unless a holder with a larger token came before: one script compares the token with
 * the highest that the resource has seen, stores it and writes. The same token may write again.
 * `docs/fencing.md` says what is stored where.
 *
 * The fence is described in Martin Kleppmann, "How to do distributed locking" (2016).
 *
 * @throws TypeError or RangeError for bad arguments, with nothing sent; LockLostError when `fence`
 *   is a lease known to be lost, LockError `LOCK_RELEASED` after its `unlock()`; StaleTokenError,
 *   with nothing written; FencedWriteError when Redis did not confirm the write, which may have
 *   been done unless the cause is a reply of Redis.
 * @example
 * import { fencedSet } from "holdfast/fencing";
 * await locks.lock("order:42").withLock(async (lease) => {
 *   await fencedSet(redis, "order:42", JSON.stringify(order), { fence: lease.token });
 * });
 */
export async function fencedSet(
  redis: RedisLike | ClusterLike | NodeRedisLike,
  key: string,
  value: RedisArgument,
  options: FencedSetOptions,
): Promise<void> {
  checkConnection("Cannot write behind a fence", redis);
  const what = `Cannot write ${quote(checkText("Cannot write behind a fence", "key", key))}`;
  checkValue(what, "value", value, ARGUMENT);
  const { ttl, ...fence } = checkOptions(what, { ...FENCE, ttl: longTime(1, undefined) }, options);
  const terms = checkFence(what, fence, key);
  const args = ttl === undefined ? [value] : [value, "PX", ttl];
  await write(redis, { what, script: fencingLua.set, keys: [key], args }, terms);
}
