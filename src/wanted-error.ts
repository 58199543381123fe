import { LockError, quote } from "./errors.ts";
import { clocks } from "./util/clock.ts";

/**
 * Somebody waits for the lock: the reason of `lease.wanted`. Nothing has failed, and the lock is still held. Work that stops for
 * that rejects with it.
 */
export class LockWantedError extends LockError {
  override readonly name = "LockWantedError";
  /**
   * The label of the caller that waits, or of its client; of several, of the first. Null: it has none or does not wait any more,
   * Redis did not say it in 50 ms, or it was known before the first read of `wanted` that another process waits.
   */
  readonly label: string | null;
  readonly #since: number;

  /** `since`: when it was known first that somebody waits, on the monotonic clock. */
  constructor(lockName: string, since: number, label: string | null, noun = "Lock") {
    const who = label === null ? "another caller" : quote(label);
    super("LOCK_WANTED", lockName, `${noun} ${quote(lockName)} is wanted by ${who}: give it back soon.`);
    this.label = label;
    this.#since = since;
  }

  /** For how many ms it has been known by now that somebody waits. A caller of another process may have waited for longer. */
  get waited(): number {
    return clocks.mono.now() - this.#since;
  }
}
