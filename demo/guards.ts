import type { Redis } from "ioredis";
import { createLockClient, type Lease, type Lock, type UnfencedLease } from "../src/index.ts";
import { optimistic } from "../src/optimistic/index.ts";
import { createQuorumClient } from "../src/quorum/index.ts";
import { redissonFencedLock } from "../src/redisson.ts";
import { spinLock } from "../src/spin.ts";
import { reentrant, type SpinLock, spin } from "../tools/redis/article-spin-lock.ts";
import { type Connection, overIoredis } from "./connect.ts";
import { fencedTill, type Shop, type Till, till, watchedTill } from "./shop.ts";
import { isWrong, type LibraryLock, type Strategy } from "./strategies.ts";
import { type Gap, wrongLock } from "./wrong-locks.ts";

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
interface Site {
  readonly shop: Shop;
  /** The lease of a lock, in ms; the library's watchdog renews it. */
  readonly leaseTime: number;
}

/** Longer than any run: nobody should leave the queue, so that all strategies serve the same orders. */
const WAIT_MS = 60_000;

/** The guards that use Redis itself; they differ in nothing but this. */
export function guardOf(
  strategy: Exclude<Strategy, LibraryLock>,
  redis: Redis,
  gap: Gap,
  { shop, leaseTime }: Site,
): Guard {
  const open = till(overIoredis(redis), shop);
  const close = async () => {};
  if (strategy === "none") return { serve: (sell) => sell(open), close };
  if (strategy === "optimistic") {
    const once = (sell: (till: Till) => Promise<boolean>) =>
      optimistic(redis, [shop.stock], (tx) => sell(watchedTill(tx, shop)), { retries: 10_000 });
    return { serve: once, close };
  }
  const lock: SpinLock = isWrong(strategy) ? wrongLock(strategy, gap) : reentrant;
  const serve = async (sell: (till: Till) => Promise<boolean>) => {
    const release = await spin(lock, redis, shop.lock, { wait: WAIT_MS, lease: leaseTime });
    if (release === null) throw new Error(`The lock was not free within ${WAIT_MS} ms`);
    return sell(open).finally(release);
  };
  return { serve, close };
}

/** The guards that are locks of this library. */
export function libraryGuard(
  strategy: LibraryLock,
  connection: Connection,
  /** The independent servers of the quorum; empty for the other strategies. */
  quorum: readonly Connection[],
  /** `isFenced`: the shop refuses a write with a smaller token than it has seen. */
  { shop, leaseTime, isFenced }: Site & { readonly isFenced: boolean },
): Guard {
  const guard = (lock: Lock<UnfencedLease>, close: () => Promise<void>): Guard => ({
    serve: (sell) =>
      lock.withLock({ wait: WAIT_MS }, (lease) =>
        // A shop checks tokens only where the strategy has them.
        sell(isFenced ? fencedTill(connection, shop, lease as Lease) : till(connection, shop, lease)),
      ),
    close,
  });
  if (strategy === "quorum") {
    // These servers have just been started, and hold no locks that they could have forgotten:
    // nothing to wait for.
    const servers = quorum.map(({ client }) => client);
    const locks = createQuorumClient(servers, { leaseTime, restartDelay: 0 });
    return guard(locks.lock(shop.lock), () => locks.close());
  }
  const locks = createLockClient(connection.client, { leaseTime });
  const kinds = {
    spinLock: () => spinLock(locks, shop.lock),
    redisson: () => redissonFencedLock(locks, shop.lock),
    "hand-off": () => locks.lock(shop.lock),
    fair: () => locks.fairLock(shop.lock),
  };
  return guard(kinds[strategy](), () => locks.close());
}
