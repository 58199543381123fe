import { setTimeout as sleep } from "node:timers/promises";
import type { LockClient, MultiLease } from "holdfast";

// Your service waits in Holdfast's queue for the lock of its old library. See docs/migrating.md.

interface Terms {
  /** How long the old lock lasts, in ms. */
  readonly ttl: number;
  /** How long the caller waits for both, in ms. */
  readonly wait: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Takes the Holdfast locks, in turn, and then the old lock: `attempt` tries it, every 20 ms while an
 * old pod holds it. Resolves with both, or with null when `wait` is over.
 */
export async function inQueue<T>(
  locks: LockClient,
  names: string[],
  { ttl, wait, signal }: Terms,
  attempt: () => PromiseLike<T | null>,
  undo: (old: T) => PromiseLike<unknown>,
): Promise<{ old: T; place: MultiLease } | null> {
  const end = performance.now() + wait;
  const place = await locks.multiLock(names).tryLock({ wait, lease: most(ttl), signal, reentrant: false });
  let old: T | null = null;
  try {
    while (place) {
      old = await attempt();
      await stay(place, ttl); // rejects if the place is lost
      if (old) return { old, place };
      if (performance.now() >= end) break;
      await sleep(20, undefined, { signal });
    }
  } catch (error) {
    if (old) await undo(old);
    await leave(place);
    throw error;
  }
  await leave(place);
  return null;
}

const most = (ttl: number): number => Math.min(ttl, 2 ** 31 - 1); // a lease is 24 days at most

/** Call it after the old lock was taken or extended for `ttl` ms: then the place ends later. */
export async function stay(place: MultiLease | null | undefined, ttl: number): Promise<void> {
  await place?.extend(most(ttl));
}

/** Call it after the old lock's release: then the next in the queue finds that one free. */
export async function leave(place: MultiLease | null | undefined): Promise<void> {
  await place?.unlock().catch(() => {}); // it has expired, like an old lock without a release
}
