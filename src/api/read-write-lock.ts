import type { Lock } from "./lock.ts";
import type { HoldingParty, WaitingParty } from "./party.ts";

/**
 * Two locks of one name: many readers hold `read` at a time, or one writer holds `write`. Both are
 * full locks, with everything that `lock` has: options, leases, events, errors, as members of a
 * multi-lock.
 *
 * They are served in the order in which they came: a writer waits for the readers before it, and
 * readers that come later wait for it, so neither starve. A scope that writes may read as well;
 * when its write lease is unlocked first, the scope goes on as a reader, with no other writer in
 * between. A scope that only reads may not write: LockError `LOCK_UPGRADE`, at once.
 *
 * @example
 * const config = locks.readWriteLock("config");
 * const value = await config.read.withLock(() => load());
 * await config.write.withLock({ wait: 1_000 }, (lease) => store(value, { fence: lease.token }));
 */
export interface ReadWriteLock {
  /** The name of both. */
  readonly name: string;
  /**
   * For readers. Those of one process share a hold in Redis, and usually need no command; each has
   * its own lease. `token`: readers with no writer between them have the same one, above that of
   * every earlier writer and below that of every later one.
   */
  readonly read: Lock;
  /** For one writer at a time. */
  readonly write: Lock;
  /**
   * The holders, and the waiting processes in the order of their places: a process has one for all
   * its readers and one for all its writers, or one for each caller if the lock is fair. At most
   * 1 000 of each. One command.
   *
   * @throws LockUnavailableError
   */
  inspect(): Promise<ReadWriteInspection>;
}

/** What `readWriteLock().inspect()` shows. */
export interface ReadWriteInspection {
  /** How it is held; null: it is free. */
  readonly mode: "read" | "write" | null;
  /** `since`: for readers, when the current group of readers began to hold the lock. */
  readonly holders: readonly HoldingParty[];
  readonly waiters: readonly WaitingParty[];
  /**
   * May each of the holders be idle? Then they are readers whose clients cache their shared hold
   * (`linger`).
   */
  readonly kept: boolean;
  /** When that was so, by the server's clock: ms since 1970. */
  readonly at: number;
}
