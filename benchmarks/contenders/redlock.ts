import Redlock, { ExecutionError, ResourceLockedError } from "redlock";
import { connect } from "./connect.ts";
import type { Contender } from "./contender.ts";

/** It has no default. Outside `using()` nothing extends it. */
const LEASE_MS = 30_000;

/** Its default, plus or minus a jitter of 100. It counts attempts, not time. */
const RETRY_DELAY_MS = 200;

/**
 * Redlock on one node, which is how most use it. It listens to its own `error` events: one for each
 * failed attempt.
 */
export const openRedlock: Contender["open"] = async (url) => {
  const redlock = new Redlock([await connect(url)]);
  return {
    async acquire(name, { wait, lease }) {
      try {
        const retryCount = Math.ceil(wait / RETRY_DELAY_MS);
        const lock = await redlock.acquire([name], lease ?? LEASE_MS, { retryCount });
        return () => lock.release();
      } catch (error) {
        if (await wasHeld(error)) return null;
        throw error;
      }
    },
    close: () => redlock.quit(),
  };
};

/** An ExecutionError is a lock that somebody else holds, and just as well a Redis that is gone. */
async function wasHeld(error: unknown): Promise<boolean> {
  if (!(error instanceof ExecutionError)) return false;
  const last = await error.attempts.at(-1);
  return [...(last?.votesAgainst.values() ?? [])].every((vote) => vote instanceof ResourceLockedError);
}
