import { createLockClient, type Lease } from "../../src/index.ts";
import { connect } from "./connect.ts";
import type { Contender, Release } from "./contender.ts";

export const openLock = openKind("lock");
export const openFairLock = openKind("fairLock");
export const openRedissonLock = openKind("redissonLock");

function openKind(kind: "lock" | "fairLock" | "redissonLock"): Contender["open"] {
  return async (url) => {
    const redis = await connect(url);
    const locks = createLockClient(redis);
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
