import type { LockClient } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { lockOf, type Maker, opponentOf } from "../support/permit.ts";
import type { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** What a caller got. */
interface Got {
  readonly held: boolean;
  unlock(): Promise<void>;
}

interface Asked {
  readonly wait?: number;
  readonly lease?: number;
  readonly signal?: AbortSignal;
}

/** Whatever has a door at which a caller is told that another one holds it. */
export interface Lockable {
  lock(options?: Asked): Promise<Got>;
  /** Null: it was told so. */
  tryLock(options?: Asked): Promise<Got | null>;
}

export type Trier = Maker | "multiLock" | "election";

const KEYS = new Keys("", false);
export const TRIERS: readonly Trier[] = [
  "lock",
  "fairLock",
  "redissonLock",
  "redissonFencedLock",
  "spinLock",
  "permit",
  "readLock",
  "writeLock",
  "multiLock",
  "election",
];
/** Those whose waiters stand in a queue of Redis, as those of a member of a multi-lock do. */
export const QUEUING = TRIERS.filter((kind) => !/^(redisson|spin|multi)/.test(kind));

export function trierOf(locks: LockClient, kind: Trier, name: string): Lockable {
  if (kind === "multiLock") return locks.multiLock([name, `${name}:b`]) as Lockable;
  if (kind !== "election") return lockOf(locks, kind, name) as Lockable;
  const lock = async ({ wait = Number.POSITIVE_INFINITY, signal }: Asked = {}): Promise<Got> => {
    const term = await locks.election(name).campaign({ wait, signal });
    return { held: term.held, unlock: () => term.resign() };
  };
  const tryLock = (options: Asked = {}) =>
    lock({ wait: 0, ...options }).catch((error: { code?: string }) => {
      if (error.code === "LOCK_TIMEOUT") return null;
      throw error;
    });
  return { lock, tryLock };
}

/** The same as another process, that keeps all of these out. */
export function otherOf(locks: LockClient, kind: Trier, name: string): Lockable {
  return kind === "readLock" ? (opponentOf(locks, name) as Lockable) : trierOf(locks, kind, name);
}

const keysOf = (kind: Trier, { name }: { readonly name: string }): readonly [held: string, queue: string] => {
  const { hash: rw, queue: readers } = KEYS.ofCounted("rw", name);
  const { hash: units, queue: takers } = KEYS.ofCounted("semaphore", name);
  const { lock: leader, queue: candidates } = KEYS.ofElection(name);
  const { lock, queue } = KEYS.of(name);
  if (kind === "readLock" || kind === "writeLock") return [rw, readers];
  if (kind === "permit") return [units, takers];
  if (kind === "election") return [leader, candidates];
  return /^(redisson|spin)/.test(kind) ? [name, ""] : [lock, queue];
};

/** Redis forgets who holds it, and tells nobody. */
export async function forget({ far, lock }: Stage, kind: Trier): Promise<void> {
  const [held] = keysOf(kind, lock);
  if ((await far.redis.del(held)) !== 1) throw new Error(`${held} is not there`);
}

/** Does Redis know of a holder? */
export async function isKnown({ far, lock }: Stage, kind: Trier): Promise<boolean> {
  return (await far.redis.exists(keysOf(kind, lock)[0])) === 1;
}

/** Resolves when a caller of `near` waits for the lock, and its client knows that it does. */
export async function parked({ near, far, lock }: Stage, kind: Trier): Promise<void> {
  const [, queue] = keysOf(kind, lock);
  const channel = KEYS.redissonChannel(lock.name);
  const isThere = async (): Promise<boolean> => {
    if (queue !== "") return (await far.redis.zcard(queue)) === 1;
    return kind === "spinLock" || Number((await far.redis.pubsub("NUMSUB", channel))[1]) === 1;
  };
  await until(isThere, { what: "a caller that waits" });
  // Commands of a connection are answered in order: what it has sent when it was heard of is
  // answered by the second one.
  for (let i = 0; i < 3; i++) await near.redis.ping();
}
