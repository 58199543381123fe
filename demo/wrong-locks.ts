// Three locks of many articles, each with one mistake, and a place where a process may be held up.
import { plain, type SpinLock } from "../tools/redis/article-spin-lock.ts";
import type { Wrong } from "./strategies.ts";

/** The place between two commands that should have been one. */
export interface Gap {
  /** Resolves with true when the demo has held this process up until its lease had ended. */
  pass(): Promise<boolean>;
  /** How many locks of other holders were deleted after that. */
  deleted: number;
}

/** Between two tries, in ms. */
const PAUSE = 10;

export function wrongLock(mistake: Wrong, gap: Gap): SpinLock {
  const right = plain(PAUSE);
  /** The lease had ended before this DEL, so what it deletes is another holder's lock. */
  const deleteLate: SpinLock["drop"] = async (redis, name) => {
    const isLate = await gap.pass();
    const deleted = await redis.del(name);
    if (isLate) gap.deleted += deleted;
  };
  const locks: Record<Wrong, SpinLock> = {
    "setnx-expire": {
      ...right,
      async take(redis, name, owner, lease) {
        if ((await redis.setnx(name, owner)) === 0) return false;
        await gap.pass();
        await redis.pexpire(name, lease);
        return true;
      },
    },
    "get-del": {
      ...right,
      async drop(redis, name, owner) {
        if ((await redis.get(name)) === owner) await deleteLate(redis, name, owner);
      },
    },
    "no-owner": {
      ...right,
      take: (redis, name, _owner, lease) => right.take(redis, name, "locked", lease),
      drop: deleteLate,
    },
  };
  return locks[mistake];
}
