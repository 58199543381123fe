import { LockError, quote } from "./errors.ts";
import { clocks } from "./util/clock.ts";

/**
 * Somebody waits for the lock: the reason of `lease.wanted`. Nothing has failed, and the lock is still held. Work that stops for
 * that rejects with it.
 */
export class LockWantedError extends LockError {
  override readonly name = "LockWantedError";
  readonly #since: number;

  /** `since`: when it was known first that somebody waits, on the monotonic clock. */
  constructor(lockName: string, since: number, noun = "Lock") {
    super(
      "LOCK_WANTED",
      lockName,
      `${noun} ${quote(lockName)} is wanted by another caller: give it back soon.`,
    );
    this.#since = since;
  }

  /** For how many ms it has been known by now that somebody waits. A caller of another process may have waited for longer. */
  get waited(): number {
    return clocks.mono.now() - this.#since;
  }
}
