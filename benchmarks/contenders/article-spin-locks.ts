import { plain, reentrant, type SpinLock, spin } from "../../tools/redis/article-spin-lock.ts";
import { connect } from "./connect.ts";
import type { Contender } from "./contender.ts";

/** Nothing renews it. */
const LEASE_MS = 30_000;

export const openSpin1To128 = open(reentrant);
export const openSpin80 = open(plain(80));
export const openSpin10 = open(plain(10));

function open(lock: SpinLock): Contender["open"] {
  return async (url) => {
    const redis = await connect(url);
    return {
      acquire: (name, { wait, lease }) => spin(lock, redis, name, { wait, lease: lease ?? LEASE_MS }),
      async close() {
        redis.disconnect();
      },
    };
  };
}
