import type { Lock } from "../api/lock.ts";
import type { ReadWriteInspection, ReadWriteLock } from "../api/read-write-lock.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import { unavailable } from "../redis/replies.ts";
import { inspectAs } from "../util/print.ts";
import { quote } from "../util/quote.ts";

/** The two locks, and how to inspect them. */
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

  /** Which of the two a caller means is unknown. The error tells JavaScript callers what to do. */
  #isTwo(): TypeError {
    return new TypeError(
      `Cannot lock ${quote(this.name)}: a read-write lock is two locks; call .read.withLock() to read or .write.withLock() to write`,
    );
  }
}

inspectAs(LockPair, "ReadWriteLock");
