import { quote } from "../errors.ts";
import type { HoldingParty, WaitingParty } from "../party.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import { unavailable } from "../redis/replies.ts";
import { printAs } from "../util/print.ts";
import type { Lock } from "./lock.ts";

/**
 * Two locks of one name: many readers hold `read` at a time, or one writer holds `write`. Both are full locks, with everything
 * that `lock` has: options, leases, events, errors, as members of a multi-lock.
 *
 * They are served in the order in which they came: a writer waits for the readers before it, and readers that come later wait
 * for it, so neither starve. A scope that writes may read as well; when its write lease is unlocked first, the scope goes on as
 * a reader, with no other writer in between. A scope that only reads may not write: LockError `LOCK_UPGRADE`, at once.
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
   * For readers. Those of one process share a hold in Redis, and mostly need no command; each has a lease of its own. `token`:
   * readers that no writer divides have the same one, above that of every writer before them and below that of every writer
   * behind them.
   */
  readonly read: Lock;
  /** For one writer at a time. */
  readonly write: Lock;
  /**
   * The holders, and the waiting processes in the order of their places: a process has one for all its readers and one for all its
   * writers, and one for each caller where the lock is fair. At most 1 000 of each. One command.
   *
   * @throws LockUnavailableError
   */
  inspect(): Promise<ReadWriteInspection>;
}

/** What `readWriteLock().inspect()` shows. */
export interface ReadWriteInspection {
  /** How it is held; null: it is free. */
  readonly mode: "read" | "write" | null;
  /** `since`: of readers, since when nobody else has had the lock. */
  readonly holders: readonly HoldingParty[];
  readonly waiters: readonly WaitingParty[];
  /** May each of the holders have nobody inside? They are readers then, whose clients keep what they share (`linger`). */
  readonly kept: boolean;
  /** When that was so, by the server's clock: ms since 1970. */
  readonly at: number;
}

/** The two locks, and how to look at them. */
export class LockPair implements ReadWriteLock {
  readonly name: string;
  readonly read: Lock;
  readonly write: Lock;
  readonly #look: () => Promise<CountedInspection>;

  constructor(read: Lock, write: Lock, look: () => Promise<CountedInspection>) {
    this.name = read.name;
    this.read = read;
    this.write = write;
    this.#look = look;
  }

  async inspect(): Promise<ReadWriteInspection> {
    const seen = await this.#look().catch((error: unknown) => {
      throw unavailable(this.name, "it could not be inspected", error, "Read-write lock");
    });
    const holders = seen.holders.map(({ party }) => party);
    return {
      mode: holders[0]?.mode ?? null,
      holders,
      waiters: seen.waiters,
      kept: holders.length > 0 && seen.holders.every(({ kept }) => kept),
      at: seen.at,
    };
  }

  toJSON(): object {
    return { name: this.name };
  }

  withLock(): never {
    throw this.#isTwo();
  }

  lock(): never {
    throw this.#isTwo();
  }

  tryLock(): never {
    throw this.#isTwo();
  }

  unlock(): never {
    throw this.#isTwo();
  }

  /** Nobody can tell which of the two a caller means. JavaScript callers are told what to do. */
  #isTwo(): TypeError {
    return new TypeError(
      `Cannot lock ${quote(this.name)}: a read-write lock is two locks; call .read.withLock() to read or .write.withLock() to write`,
    );
  }
}

printAs(LockPair, "ReadWriteLock");
