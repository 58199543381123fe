import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { REPLY_TIMEOUT, RETRY_MAX, RETRY_MIN, TRANSACTIONS_AT_ONCE } from "../defaults.ts";
import { isConnection } from "../redis/ioredis/connection.ts";
import type { Client as NodeRedisClient } from "../redis/node-redis/client.ts";
import { pause } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import { between } from "../util/random.ts";
import { IoredisSource } from "./ioredis-source.ts";
import { NodeRedisSource } from "./node-redis-source.ts";
import { isElsewhere, isReply, Session, type TransactionConnection } from "./session.ts";
import type { Source } from "./source.ts";

const known = new WeakMap<object, Pools>();

/** The connections for transactions on this connection of the caller. */
export function poolsOf(redis: RedisLike | ClusterLike | NodeRedisClient): Pools {
  const pools =
    known.get(redis) ??
    new Pools(isConnection(redis) ? new IoredisSource(redis) : new NodeRedisSource(redis));
  known.set(redis, pools);
  return pools;
}

/**
 * For each server and database that transactions of one caller's connection use: a few separate
 * connections.
 */
class Pools {
  readonly #source: Source;
  readonly #pools = new Map<string, Pool>();

  constructor(source: Source) {
    this.#source = source;
    source.onEnd(() => {
      for (const pool of this.#pools.values())
        for (const session of pool.idle.splice(0)) if (session.wake()) session.connection.disconnect();
    });
  }

  get #isOver(): boolean {
    return this.#source.isOver;
  }

  slotOf(keys: readonly string[]): number | null {
    return this.#source.slotOf(keys);
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

  refresh(): void {
    this.#source.refresh();
  }

  /** The pool of the server that has the keys, and how to connect to it. */
  #poolFor(slot: number | null): { pool: Pool; connect: () => TransactionConnection } {
    const { name, connect } = this.#source.placeOf(slot);
    const pool = this.#pools.get(name) ?? { semaphore: new LocalSemaphore(TRANSACTIONS_AT_ONCE), idle: [] };
    this.#pools.set(name, pool);
    return { pool, connect };
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
