import type { Redis } from "ioredis";
import { createLockClient, type Lease, type Lock, type UnfencedLease } from "../src/index.ts";
import { optimistic } from "../src/optimistic/index.ts";
import { createQuorumClient } from "../src/quorum/index.ts";
import { redissonFencedLock } from "../src/redisson.ts";
import { spinLock } from "../src/spin.ts";
import { reentrant, spin } from "../tools/redis/article-spin-lock.ts";
import { fencedTill, type Shop, type Till, till, watchedTill } from "./shop.ts";

/**
 * How an order is kept apart from the others, in the order in which the articles come to them.
 * `spin` is the spin lock of the articles, `spinLock` the library's, whose callers of one process
 * pass the lock on.
 */
export const STRATEGIES = [
  "none",
  "optimistic",
  "spin",
  "spinLock",
  "redisson",
  "hand-off",
  "fair",
  "quorum",
] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** Those with fencing tokens, which the shop can check at every write. */
export const WITH_TOKENS: readonly Strategy[] = ["redisson", "hand-off", "fair", "quorum"];

/** What stands between an order and the stock. */
export interface Guard {
  /**
   * Runs `sell` when it is this order's turn; several times where the strategy tries again after a
   * conflict.
   */
  serve(sell: (till: Till) => Promise<boolean>): Promise<unknown>;
  close(): Promise<void>;
}

/** What a guard is made of. */
export interface Site {
  readonly redis: Redis;
  /** The independent servers of the quorum; empty for the other strategies. */
  readonly quorum: readonly Redis[];
  readonly shop: Shop;
  /** The lease that the watchdog renews, in ms. */
  readonly leaseTime: number;
  /** The shop refuses a write with a smaller token than it has seen. */
  readonly isFenced: boolean;
}

/** Longer than any run: nobody should leave the queue, so that all strategies serve the same orders. */
const WAIT_MS = 60_000;

/** One guard for each strategy; they differ in nothing but this. */
export function guardOf(strategy: Strategy, site: Site): Guard {
  const { redis, shop, leaseTime } = site;
  if (strategy === "none") return { serve: (sell) => sell(till(redis, shop)), close: async () => {} };
  if (strategy === "optimistic") {
    const once = (sell: (till: Till) => Promise<boolean>) =>
      optimistic(redis, [shop.stock], (tx) => sell(watchedTill(tx, shop)), { retries: 10_000 });
    return { serve: once, close: async () => {} };
  }
  if (strategy === "spin") {
    const serve = async (sell: (till: Till) => Promise<boolean>) => {
      const release = await spin(reentrant, redis, shop.lock, { wait: WAIT_MS, lease: leaseTime });
      if (release === null) throw new Error(`The lock was not free within ${WAIT_MS} ms`);
      return sell(till(redis, shop)).finally(release);
    };
    return { serve, close: async () => {} };
  }
  if (strategy === "quorum") {
    // These servers have just been started, and hold no locks that they could have forgotten:
    // nothing to wait for.
    const locks = createQuorumClient([...site.quorum], { leaseTime, restartDelay: 0 });
    return withLock(site, locks.lock(shop.lock), () => locks.close());
  }
  const locks = createLockClient(redis, { leaseTime });
  const kinds = {
    spinLock: () => spinLock(locks, shop.lock),
    redisson: () => redissonFencedLock(locks, shop.lock),
    "hand-off": () => locks.lock(shop.lock),
    fair: () => locks.fairLock(shop.lock),
  };
  return withLock(site, kinds[strategy](), () => locks.close());
}

function withLock(
  { redis, shop, isFenced }: Site,
  lock: Lock<UnfencedLease>,
  close: () => Promise<void>,
): Guard {
  return {
    serve: (sell) =>
      lock.withLock(
        {
          wait: WAIT_MS,
        },
        // A shop checks tokens only where the strategy has them.
        (lease) => sell(isFenced ? fencedTill(redis, shop, lease as Lease) : till(redis, shop, lease)),
      ),
    close,
  };
}
