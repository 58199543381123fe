import { AsyncLocalStorage } from "node:async_hooks";
import { ConflictError, TransactionError } from "../api/errors.ts";
import type { ClusterLike, NodeRedisLike, RedisLike } from "../api/redis.ts";
import { CONFLICT_PAUSE_MAX, CONFLICT_PAUSE_MIN, RETRY_MAX, RETRY_MIN } from "../defaults.ts";
import { linkTo, noConnection } from "../redis/drivers.ts";
import { isConnection } from "../redis/ioredis/connection.ts";
import { isClient } from "../redis/node-redis/client.ts";
import { pause } from "../util/abort.ts";
import { between } from "../util/random.ts";
import { Attempt, type Transaction, TryAgain } from "./attempt.ts";
import { poolsOf } from "./connection-pool.ts";
import { checkTransaction, type OptimisticOptions } from "./options.ts";

/**
 * The body in which this code runs. Made at the first transaction: it costs every promise a little.
 */
let bodies: AsyncLocalStorage<{ readonly hasEnded: boolean }> | null = null;

/**
 * Reads and writes without a lock, and writes nothing if another client changed what was read:
 * WATCH of `keys`, the body, MULTI, the commands that the body queued, EXEC. After a conflict, or a
 * lost connection, it repeats all of that, at most `retries` times (default 16), after a random
 * pause whose maximum grows to 250 ms (2 s for connections).
 *
 * Resolves with the body's result when EXEC has succeeded. A body that queues nothing is confirmed
 * in the same way: what it read was true at one moment. A body that throws is not confirmed: its
 * error comes at once, and nothing is written.
 *
 * **The body may run several times**, so it should have no other effects than what it queues; it
 * must not call `optimistic` on any connection (the inner one would write although the outer one
 * runs again). Each try uses a separate connection, one of at most 8 duplicates of `redis`; further
 * calls wait for one, first come, first served.
 *
 * `redis` is a connection or a Cluster of ioredis, or a client of node-redis, `createClient()`. The
 * body's `tx.redis` and `tx.multi` have the methods of that library.
 *
 * `signal` ends it before EXEC is sent: the call rejects with `signal.reason` at once, even while
 * the body runs, and nothing is written. After that the outcome of EXEC counts.
 *
 * @param keys 1 or more, as you would give them to `redis`: its `keyPrefix` goes before them. In
 *   Cluster they share a slot.
 * @throws ConflictError when other clients changed a key during every try. Nothing was written.
 * @throws TransactionError when Redis failed; `executed` says whether something was written.
 *   "unknown": the answer of EXEC was lost. It is not tried again then, as it may have been
 *   executed.
 * @throws the body's error; `signal.reason`; TypeError or RangeError for bad input, before anything is sent.
 * @see https://redis.io/docs/latest/develop/using-commands/transactions/
 * @example
 * import { Redis } from "ioredis";
 * import { optimistic } from "holdfast/optimistic";
 * const redis = new Redis();
 * const outcome = await optimistic(redis, ["stock:1"], async (tx) => {
 *   const stock = Number(await tx.redis.get("stock:1"));
 *   if (stock <= 0) return "sold out";
 *   tx.multi.decr("stock:1");
 *   return "sold";
 * });
 */
export async function optimistic<R extends RedisLike | ClusterLike | NodeRedisLike, T>(
  redis: R,
  keys: readonly string[],
  body: (transaction: Transaction<R>) => T | PromiseLike<T>,
  options?: OptimisticOptions,
): Promise<T> {
  if (!isConnection(redis) && !(typeof redis === "object" && redis !== null && isClient(redis)))
    throw new TypeError(
      linkTo(redis)
        ? "Cannot run a transaction: of node-redis it takes what createClient(…) returns, no Cluster and no Sentinel group; of ioredis it takes each of them"
        : `Cannot run a transaction: redis ${noConnection(redis)}`,
    );
  const { keys: watched, retries, signal } = checkTransaction(keys, body, options);
  const pools = poolsOf(redis as Parameters<typeof poolsOf>[0]);
  const slot = pools.slotOf(watched);
  bodies ??= new AsyncLocalStorage();
  // Its writes would stay even when the outer body runs again; and if each of 8 bodies waited for a
  // ninth connection, none would end.
  if (bodies.getStore()?.hasEnded === false)
    throw new TypeError(
      "Cannot run a transaction in the body of another: queue its writes in that one, or call it afterwards",
    );
  signal?.throwIfAborted();
  for (let tries = 1; ; tries++) {
    const { session, checkin } = await pools.checkout(slot, signal).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw new TransactionError(watched, "nothing", "was not executed", error);
    });
    const attempt = new Attempt<R>(session, watched, slot);
    const storage = bodies;
    let cause: Error | null;
    try {
      return await attempt.run(() => storage.run(attempt, () => body(attempt.transaction)), signal);
    } catch (error) {
      if (!(error instanceof TryAgain)) throw error;
      ({ cause } = error);
    } finally {
      checkin();
    }
    signal?.throwIfAborted();
    if (cause) pools.refresh();
    if (tries > retries)
      throw cause
        ? new TransactionError(watched, "nothing", `was not executed in ${tries} tries`, cause)
        : new ConflictError(watched, tries);
    const [least, most] = cause ? [RETRY_MIN, RETRY_MAX] : [CONFLICT_PAUSE_MIN, CONFLICT_PAUSE_MAX];
    // Full jitter: callers that met in this try should not meet in the next.
    await pause(between(0, Math.min(most, least * 2 ** (tries - 1))), signal);
  }
}
