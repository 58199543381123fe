import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { REPLY_TIMEOUT } from "../defaults.ts";
import { NO_NODE } from "../redis/driver.ts";
import { isCluster, ownerOf } from "../redis/ioredis/connection.ts";
import { currentOptions, remember } from "../redis/ioredis/current-options.ts";
import { detached } from "../util/detached.ts";
import { quote } from "../util/quote.ts";
import { slotOf } from "../util/slots.ts";
import { type IoredisConnection, OVERRIDES, type TransactionConnection } from "./session.ts";
import type { Source } from "./source.ts";

/** The parts of ioredis that the locks do not use. */
type Given = (RedisLike | ClusterLike) & {
  readonly condition?: { readonly select?: number } | null;
  readonly options: { readonly commandTimeout?: number; readonly db?: number };
  connect(): Promise<void>;
};

/** A connection or a Cluster of ioredis. */
export class IoredisSource implements Source {
  readonly #redis: Given;
  isOver: boolean;

  constructor(given: RedisLike | ClusterLike) {
    const redis = given as Given;
    this.#redis = redis;
    if (isCluster(redis)) remember(redis);
    // An ended Cluster has the status "close".
    this.isOver = redis.status === "end" || (isCluster(redis) && redis.status === "close");
    redis.on("connecting", () => {
      this.isOver = false;
    });
  }

  onEnd(ended: () => void): void {
    this.#redis.on("end", () => {
      this.isOver = true;
      ended();
    });
  }

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

  refresh(): void {
    const redis = this.#redis;
    if (!isCluster(redis)) return;
    if (redis.status === "wait") (redis as Given).connect().catch(() => {});
    else redis.refreshSlotsCache();
  }

  placeOf(slot: number | null): { name: string; connect: () => TransactionConnection } {
    const redis = this.#redis;
    const { keyPrefix = "" } = redis.options;
    // A duplicate uses the database of its options, and the caller may have selected another one
    // since.
    const db = redis.condition?.select ?? redis.options.db ?? 0;
    const owner =
      isCluster(redis) && slot !== null ? ownerOf(redis, slot) : { address: "", node: redis as RedisLike };
    if (!owner) throw new Error(NO_NODE);
    const { commandTimeout } = owner.node.options as Given["options"];
    const limits = { commandTimeout: commandTimeout ?? REPLY_TIMEOUT, ...(slot === null && { db }) };
    const current = currentOptions(owner.node, isCluster(redis) ? redis : null);
    const overrides = { ...current, ...OVERRIDES, keyPrefix, ...limits };
    return {
      name: `${owner.address}/${db}`,
      connect: () => detached(() => owner.node.duplicate(overrides) as IoredisConnection),
    };
  }
}
