import type { Lease, LockClientOptions } from "../../src/index.ts";
import { connect } from "./connect.ts";
import type { Contender, Release } from "./contender.ts";
import { loadLibrary } from "./library.ts";

export const openLock = openKind("lock");
/** An unlocked lock stays with its process for up to a second, where that pays. */
export const openLingeringLock = openKind("lock", { linger: 1_000 });
export const openFairLock = openKind("fairLock");
/** Without passes, which need no Redis: it shows what a broadcast costs, beside the same waiting with a hand-off. */
export const openRedissonLock = openKind("redissonLock", { localPasses: 0 });

function openKind(
  kind: "lock" | "fairLock" | "redissonLock",
  options?: LockClientOptions,
): Contender["open"] {
  return async (url, { library }) => {
    const [redis, { createLockClient }] = await Promise.all([connect(url), loadLibrary(library)]);
    const locks = createLockClient(redis, options);
    return {
      acquire: (name, { wait, lease }) =>
        locks[kind](name)
          .tryLock(wait, lease ?? undefined)
          .then(toRelease),
      async close() {
        await locks.close();
        redis.disconnect();
      },
    };
  };
}

const toRelease = (lease: Lease | null): Release | null => lease && (() => lease.unlock());
