import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { REPLY_TIMEOUT, RETRY_MAX, RETRY_MIN, TRANSACTIONS_AT_ONCE } from "../defaults.ts";
import { NO_NODE } from "../redis/driver.ts";
import { isCluster, ownerOf } from "../redis/ioredis/connection.ts";
import { currentOptions, remember } from "../redis/ioredis/current-options.ts";
import { pause } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import { quote } from "../util/quote.ts";
import { between } from "../util/random.ts";
import { slotOf } from "../util/slots.ts";
import { type ConnectionLike, isElsewhere, isReply, OVERRIDES, Session } from "./session.ts";

/** The parts of ioredis that the locks do not use. */
type Source = (RedisLike | ClusterLike) & {
  readonly condition?: { readonly select?: number } | null;
  readonly options: { readonly commandTimeout?: number; readonly db?: number };
  connect(): Promise<void>;
};

const known = new WeakMap<object, Pools>();

/** The connections for transactions on this connection of the caller. */
export function poolsOf(redis: RedisLike | ClusterLike): Pools {
  const pools = known.get(redis) ?? new Pools(redis as Source);
  known.set(redis, pools);
  return pools;
}

/**
 * For each server and database that transactions of one caller's connection use: a few separate
 * connections.
 */
class Pools {
  readonly #redis: Source;
  readonly #pools = new Map<string, Pool>();
  #isOver: boolean;

  constructor(redis: Source) {
    this.#redis = redis;
    if (isCluster(redis)) remember(redis);
    // An ended Cluster has the status "close".
    this.#isOver = redis.status === "end" || (isCluster(redis) && redis.status === "close");
    redis.on("connecting", () => {
      this.#isOver = false;
    });
    redis.on("end", () => {
      this.#isOver = true;
      for (const pool of this.#pools.values())
        for (const session of pool.idle.splice(0)) if (session.wake()) session.connection.disconnect();
    });
  }

  /** @throws RangeError for keys of a Cluster that no single server has. */
  slotOf(keys: readonly string[]): number | null {
    if (!isCluster(this.#redis)) return null;
    const { keyPrefix = "" } = this.#redis.options;
    const [first = "", ...others] = keys;
    const slot = slotOf(keyPrefix + first);
    const stray = others.filter((key) => slotOf(keyPrefix + key) !== slot);
    if (stray.length === 0) return slot;
    throw new RangeError(
      `Cannot run a transaction: in Cluster its keys must have one hash slot, and ${stray.map(quote).join(", ")} ` +
        `${stray.length === 1 ? "has" : "have"} another than ${quote(first)}; give them a common {tag}`,
    );
  }

  /**
   * A connection for one try, for its caller alone until `checkin` is called. Callers are served in
   * the order in which they came. Connecting is tried again for 5 s: a server may restart or fail
   * over.
   *
   * @throws the connection's error; the signal's reason.
   */
  async checkout(slot: number | null, signal: AbortSignal | undefined) {
    let until = Number.POSITIVE_INFINITY;
    for (let tries = 0; ; tries++) {
      let entered: Pool | undefined;
      try {
        if (this.#isOver) throw new Error("the connection that it was given is closed");
        const { pool, connect } = this.#poolFor(slot);
        await pool.semaphore.enter(Number.POSITIVE_INFINITY, signal);
        entered = pool;
        until = Math.min(until, clocks.mono.now() + REPLY_TIMEOUT);
        let session = pool.idle.pop();
        while (session && !session.wake()) session = pool.idle.pop();
        session ??= await Session.open(connect(), Math.max(1, until - clocks.mono.now()), signal);
        const taken = session;
        return { session, checkin: () => this.#checkin(pool, taken) };
      } catch (error) {
        entered?.semaphore.leave();
        until = Math.min(until, clocks.mono.now() + REPLY_TIMEOUT);
        const ms = between(0, Math.min(RETRY_MAX, RETRY_MIN * 2 ** tries));
        const isFinal = isReply(error) && !isElsewhere(error); // a wrong password stays wrong
        if (signal?.aborted || this.#isOver || isFinal || clocks.mono.now() + ms > until) throw error;
        this.refresh();
        await pause(ms, signal);
      }
    }
  }

  /** Makes a Cluster read again where its slots are. */
  refresh(): void {
    const redis = this.#redis;
    if (!isCluster(redis)) return;
    if (redis.status === "wait") (redis as Source).connect().catch(() => {});
    else redis.refreshSlotsCache();
  }

  /** The pool of the server that has the keys, and how to connect to it. */
  #poolFor(slot: number | null): { pool: Pool; connect: () => ConnectionLike } {
    const redis = this.#redis;
    const { keyPrefix = "" } = redis.options;
    // A duplicate uses the database of its options, and the caller may have selected another one
    // since.
    const db = redis.condition?.select ?? redis.options.db ?? 0;
    const owner =
      isCluster(redis) && slot !== null ? ownerOf(redis, slot) : { address: "", node: redis as RedisLike };
    if (!owner) throw new Error(NO_NODE);
    const name = `${owner.address}/${db}`;
    const pool = this.#pools.get(name) ?? { semaphore: new LocalSemaphore(TRANSACTIONS_AT_ONCE), idle: [] };
    this.#pools.set(name, pool);
    const { commandTimeout } = owner.node.options as Source["options"];
    const limits = { commandTimeout: commandTimeout ?? REPLY_TIMEOUT, ...(slot === null && { db }) };
    const current = currentOptions(owner.node, isCluster(redis) ? redis : null);
    const overrides = { ...current, ...OVERRIDES, keyPrefix, ...limits };
    return { pool, connect: () => detached(() => owner.node.duplicate(overrides) as ConnectionLike) };
  }

  #checkin({ idle, semaphore }: Pool, session: Session): void {
    // Keys watched by this transaction must not affect the next one.
    session.clean();
    if (session.isLost || this.#isOver) session.connection.disconnect();
    else idle.push(session.rest());
    semaphore.leave();
  }
}

/** The connections to one server: unused ones wait for a while for the next transaction. */
interface Pool {
  readonly semaphore: LocalSemaphore;
  /**
   * The last one is taken first, so that surplus ones grow old. Closed ones stay here until their
   * turn comes.
   */
  readonly idle: Session[];
}
