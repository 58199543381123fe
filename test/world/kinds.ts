import type { Lock, LockClient, LockOptions, PermitLease, Term, UnfencedLease } from "../../src/index.ts";
import { leaseLike } from "../support/lease-like.ts";
import { type NotRun, runJob } from "./once.ts";
import type { Product } from "./product.ts";
import { resultKind } from "./results.ts";

export type AnyLease = UnfencedLease | PermitLease;

/** How a hold excludes others: alone, as a reader, as a writer, or by its permits. */
type Mode = "alone" | "read" | "write" | "permits";

/** The options of a call. */
interface Wanted {
  /** null: `tryLock()` without a time to wait. */
  readonly wait: number | null;
  readonly lease: number | null;
  readonly signal: AbortSignal | null;
  readonly units: number;
  /** Further options. */
  readonly more?: LockOptions;
}

export const PERMITS = 3;

/** A method of the client that takes something. */
export interface Kind {
  readonly mode: Mode;
  /** The start of the names that it uses: kinds with one start share their locks. */
  readonly family: string;
  /** Are its waiters served in the order in which they came? */
  readonly isFair: boolean;
  /** Does it give tokens that grow, and an order of waiters in Redis? */
  readonly hasTokens: boolean;
  take(product: Product, client: LockClient, name: string, wanted: Wanted): Promise<AnyLease | null>;
}

type LockOf = (product: Product, client: LockClient, name: string) => Lock<UnfencedLease>;

const optionsOf = ({ wait, lease, signal, more }: Wanted): LockOptions => ({
  ...(wait !== null && Number.isFinite(wait) && { wait }),
  ...(lease !== null && { lease }),
  ...(signal && { signal }),
  ...more,
});

async function lockWith(lock: Lock<UnfencedLease>, wanted: Wanted) {
  return wanted.wait === null ? lock.tryLock(optionsOf(wanted)) : lock.lock(optionsOf(wanted));
}

const kindOf = (mode: Mode, family: string, isFair: boolean, lockOf: LockOf, hasTokens = true): Kind => ({
  mode,
  family,
  isFair,
  hasTokens,
  take: (product, client, name, wanted) => lockWith(lockOf(product, client, name), wanted),
});

const semaphore = (family: string, fair: boolean): Kind => ({
  mode: "permits",
  family,
  isFair: fair,
  hasTokens: true,
  take(_, client, name, wanted) {
    const permits = client.semaphore(name, { permits: PERMITS, fair });
    const { wait, units } = wanted;
    return wait === null
      ? permits.tryAcquire(units, optionsOf(wanted))
      : permits.acquire(units, optionsOf(wanted));
  },
});

/** The parts of a lease that a term has, with `resign` as `unlock`: it cannot be extended. */
export const leaseOf = (term: Term, unlock = () => term.resign()): AnyLease =>
  leaseLike(term, {
    token: term.token,
    proclaim: (value: string) => term.proclaim(value),
    unlock,
  }) as unknown as UnfencedLease;

/** Its leader proclaims the id of its client. */
const term: Kind = {
  mode: "alone",
  family: "election",
  isFair: true,
  hasTokens: true,
  async take(_, client, name, { wait, signal }) {
    const wanted = { value: client.id, wait: wait ?? 0, ...(signal && { signal }) };
    return leaseOf(await client.election(name).campaign(wanted));
  },
};

/** A job that runs once per interval; its turn is the lease. `notRun`: hears why a body may not run. */
export const onceKind = (notRun: (told: NotRun) => void): Kind => ({
  mode: "alone",
  family: "once",
  isFair: false,
  hasTokens: false,
  take: (_, client, name, { signal }) => runJob(client, name, signal, notRun),
});

/** By name, as a run tells them. */
export const kinds = {
  lock: kindOf("alone", "lock", false, (_, client, name) => client.lock(name)),
  fairLock: kindOf("alone", "fair", true, (_, client, name) => client.fairLock(name)),
  "lock of a shared name": kindOf("alone", "mixed", false, (_, client, name) => client.lock(name)),
  "fairLock of a shared name": kindOf("alone", "mixed", false, (_, client, name) => client.fairLock(name)),
  read: kindOf("read", "rw", false, (_, client, name) => client.readWriteLock(name).read),
  write: kindOf("write", "rw", false, (_, client, name) => client.readWriteLock(name).write),
  "fair read": kindOf(
    "read",
    "frw",
    true,
    (_, client, name) => client.readWriteLock(name, { fair: true }).read,
  ),
  "fair write": kindOf(
    "write",
    "frw",
    true,
    (_, client, name) => client.readWriteLock(name, { fair: true }).write,
  ),
  semaphore: semaphore("sem", false),
  "fair semaphore": semaphore("fsem", true),
  term,
  once: onceKind(() => {}),
  remember: resultKind("", { keep: 0 }, () => {}),
  spinLock: kindOf("alone", "spin", false, ({ spinLock }, client, name) => spinLock(client, name), false),
  redissonLock: kindOf(
    "alone",
    "redisson",
    false,
    ({ redissonLock }, client, name) => redissonLock(client, name),
    false,
  ),
  redissonFencedLock: kindOf(
    "alone",
    "redissonFenced",
    false,
    ({ redissonFencedLock }, client, name) => redissonFencedLock(client, name),
    false,
  ),
} satisfies Record<string, Kind>;

export type KindName = keyof typeof kinds;
