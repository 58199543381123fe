import { CONNECTION_IDLE, REPLY_TIMEOUT, RETRY_MAX, RETRY_MIN, TRANSACTIONS_AT_ONCE } from "../defaults.ts";
import { quote } from "../errors.ts";
import { ownerOf } from "../redis/nodes.ts";
import { slotOf } from "../redis/slots.ts";
import { type ClusterLike, isCluster, type RedisLike } from "../redis/types.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import { outside } from "../util/outside.ts";
import { between } from "../util/random.ts";
import { pause } from "./pause.ts";
import { type ConnectionLike, isElsewhere, isReply, OVERRIDES, Session } from "./session.ts";

/** A session for one try. `giveBack` must be called once. */
export interface Loan {
  readonly session: Session;
  giveBack(): void;
}

/** What ioredis has beside what the locks need. */
type Source = (RedisLike | ClusterLike) & {
  readonly condition?: { readonly select?: number } | null;
  readonly options: { readonly commandTimeout?: number; readonly db?: number };
  connect(): Promise<void>;
};

const pools = new WeakMap<object, Pools>();

/** The connections that transactions on this connection of the caller's use. */
export function poolsOf(redis: RedisLike | ClusterLike): Pools {
  let known = pools.get(redis);
  if (!known) {
    known = new Pools(redis as Source);
    pools.set(redis, known);
  }
  return known;
}

/** For each server, and database, that transactions of one caller's connection go to: a few connections of their own. */
export class Pools {
  readonly #redis: Source;
  readonly #pools = new Map<string, Pool>();
  #isOver: boolean;

  constructor(redis: Source) {
    this.#redis = redis;
    // A Cluster that has ended says "close".
    this.#isOver = redis.status === "end" || (isCluster(redis) && redis.status === "close");
    redis.on("connecting", () => {
      this.#isOver = false;
    });
    redis.on("end", () => {
      this.#isOver = true;
      for (const pool of this.#pools.values()) pool.closeIdle();
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
   * A connection that nobody else uses meanwhile. Callers are served in the order in which they came. What does not
   * connect is tried again for 5 s: a server that restarts, a failover.
   *
   * @throws the connection's error; the signal's reason.
   */
  async borrow(slot: number | null, signal: AbortSignal | undefined): Promise<Loan> {
    let began: number | undefined;
    for (let tries = 0; ; tries++) {
      try {
        if (this.#isOver) throw new EndedError("the connection that it was given is closed");
        const pool = this.#poolFor(slot);
        await pool.turnstile.enter(Number.POSITIVE_INFINITY, signal);
        began ??= performance.now();
        return await pool.lend(Math.max(1, began + REPLY_TIMEOUT - performance.now()), signal);
      } catch (error) {
        began ??= performance.now();
        if (signal?.aborted || error instanceof EndedError) throw error;
        if (isReply(error) && !isElsewhere(error)) throw error; // a wrong password stays wrong
        const ms = between(0, Math.min(RETRY_MAX, RETRY_MIN * 2 ** tries));
        if (performance.now() + ms > began + REPLY_TIMEOUT) throw error;
        this.refresh();
        await pause(ms, signal);
      }
    }
  }

  /** Has a Cluster look where its slots are. */
  refresh(): void {
    const redis = this.#redis;
    if (!isCluster(redis)) return;
    if (redis.status === "wait") (redis as Source).connect().catch(() => {});
    else redis.refreshSlotsCache();
  }

  #poolFor(slot: number | null): Pool {
    const redis = this.#redis;
    const { keyPrefix = "" } = redis.options;
    // A duplicate goes to the database that its options name, and the caller may have chosen another one since.
    const db = redis.condition?.select ?? redis.options.db ?? 0;
    const owner =
      isCluster(redis) && slot !== null ? ownerOf(redis, slot) : { address: "", node: redis as RedisLike };
    if (!owner) throw new Error("no node is known for the slot of its keys");
    const name = `${owner.address}/${db}`;
    let pool = this.#pools.get(name);
    if (!pool) {
      const { commandTimeout } = owner.node.options as Source["options"];
      const overrides = {
        ...OVERRIDES,
        keyPrefix,
        commandTimeout: commandTimeout ?? REPLY_TIMEOUT,
        ...(slot === null && { db }),
      };
      const connect = (): ConnectionLike => outside(() => owner.node.duplicate(overrides) as ConnectionLike);
      pool = new Pool(connect, () => this.#isOver);
      this.#pools.set(name, pool);
    }
    return pool;
  }
}

class EndedError extends Error {}

/** The connections to one server: made when they are needed, closed when they were idle for a while. */
class Pool {
  readonly turnstile = new LocalSemaphore(TRANSACTIONS_AT_ONCE);
  readonly #connect: () => ConnectionLike;
  readonly #isOver: () => boolean;
  readonly #idle = new Map<Session, NodeJS.Timeout>();

  constructor(connect: () => ConnectionLike, isOver: () => boolean) {
    this.#connect = connect;
    this.#isOver = isOver;
  }

  /** For a caller that has come through the turnstile. It leaves the turnstile when this fails, or with its loan. */
  async lend(timeout: number, signal: AbortSignal | undefined): Promise<Loan> {
    try {
      const session = this.#takeIdle() ?? (await Session.open(this.#connect(), timeout, signal));
      return { session, giveBack: () => this.#takeBack(session) };
    } catch (error) {
      this.turnstile.leave();
      throw error;
    }
  }

  closeIdle(): void {
    for (let session = this.#takeIdle(); session; session = this.#takeIdle()) session.connection.disconnect();
  }

  /** The one that was used last, so that those too many grow old. */
  #takeIdle(): Session | null {
    for (const [session, timer] of [...this.#idle].reverse()) {
      clearTimeout(timer);
      this.#idle.delete(session);
      if (session.isLost) continue;
      return session;
    }
    return null;
  }

  #takeBack(session: Session): void {
    // The next one must not stumble over keys that this one watched.
    session.clean();
    if (session.isLost || this.#isOver()) session.connection.disconnect();
    else {
      const close = (): void => {
        this.#idle.delete(session);
        session.connection.disconnect();
      };
      this.#idle.set(
        session,
        outside(() => setTimeout(close, CONNECTION_IDLE).unref()),
      );
    }
    this.turnstile.leave();
  }
}
