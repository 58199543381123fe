import type { Connected } from "./connection.ts";

/** What is in Redis. */
export interface Leftovers {
  readonly heldLocks: number;
  readonly waitedLocks: number;
  readonly longestHeld: { readonly name: string; readonly heldFor: number } | null;
  /** Names of locks that never end by themselves: written by hand, or by another program. */
  readonly endless: readonly string[];
  /** Why it is not known; null: it is. */
  readonly missing: string | null;
}

/** `timeout`: ms for all of it. */
export async function leftovers({ locks }: Connected, timeout: number): Promise<Leftovers> {
  let [heldLocks, waitedLocks] = [0, 0];
  let longestHeld: Leftovers["longestHeld"] = null;
  const endless: string[] = [];
  try {
    for await (const { name, holder, waiters, heldFor, remaining } of locks.list({
      signal: AbortSignal.timeout(timeout),
    })) {
      if (holder) heldLocks++;
      if (waiters?.length) waitedLocks++;
      if (heldFor !== null && heldFor > (longestHeld?.heldFor ?? -1)) longestHeld = { name, heldFor };
      if (remaining === Number.POSITIVE_INFINITY) endless.push(name);
    }
    return { heldLocks, waitedLocks, longestHeld, endless, missing: null };
  } catch (error) {
    const why =
      error instanceof Error && error.name === "TimeoutError"
        ? "there is too much in this Redis to look at in time (--timeout)."
        : String((error as Error).message);
    return { heldLocks, waitedLocks, longestHeld, endless, missing: why };
  }
}
