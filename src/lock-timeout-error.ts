import { LockError, quote } from "./errors.ts";
import type { Party } from "./party.ts";
import { visible } from "./util/visible.ts";

/**
 * `lock()` or `withLock()` waited for `wait` ms and somebody else held the lock all the time; of a multi-lock, held the
 * member that is named when the time was over; of a semaphore, held so many permits that too few were left; of an election, others
 * led. Nothing is left in Redis.
 */
export class LockTimeoutError extends LockError {
  override readonly name = "LockTimeoutError";

  /** `members`: how many locks the call wanted together. `units`: how many permits of a semaphore; 0: it is a lock. */
  constructor(
    lockName: string,
    /** How long the call was willing to wait, in ms. */
    readonly wait: number,
    members = 1,
    /**
     * Where the holder was, when the time was over: in this scope, which had lent the lock to another body, or whose hold this call
     * did not enter (`reentrant: false`); in this process, by the same client; or elsewhere, also by another client of this process, as far as this client knows without asking Redis. Of
     * a semaphore always "somebody else".
     */
    readonly heldBy: "this scope" | "this process" | "somebody else" = "somebody else",
    units = 0,
    noun = "Lock",
    /**
     * The holder, as one look behind the end of the time has shown it: with its label, host and pid. Null: nobody held the lock at that
     * moment, or Redis did not say so within 100 ms. Of a semaphore, and of readers, one of them.
     */
    readonly holder: Party | null = null,
  ) {
    const more = members > 1 ? ` for it and ${members - 1} more` : "";
    const isAll = members === 1 && heldBy === "somebody else";
    const held =
      wait === 0
        ? `when this call asked${more}, which was not to wait`
        : `${isAll ? `for all of the ${wait} ms` : `when the ${wait} ms were over`} that this call waited${more}`;
    const { by, cure } = (heldBy === "somebody else" && OTHERS[noun]) || HOLDERS[heldBy];
    const seen = holder ? ` (at the end by ${named(holder)})` : "";
    const message =
      units > 0
        ? `Semaphore ${quote(lockName)} had too few permits for this call, which wanted ${units}, ${held}${seen}. ${SOONER} tryAcquire() and treat null as busy.`
        : `${noun} ${quote(lockName)} was ${noun === "Election" ? "led" : "held"} by ${by} ${held}${seen}. ${cure}`;
    super("LOCK_TIMEOUT", lockName, message);
  }
}

/** By its label where it has one, and where it runs. */
function named({ label, host, pid, id }: Party): string {
  if (host === null) return quote(id);
  return `${label === null ? "a process" : quote(label)} on ${visible(host)}, pid ${pid}`;
}

const SOONER = "Wait longer, hold them for a shorter time, or use";

const HOLDERS = {
  "somebody else": {
    by: "somebody else",
    cure: "Wait longer, hold it for a shorter time, or use tryLock() and treat null as busy.",
  },
  "this process": {
    by: "this process itself",
    cure: "If this call comes from the code that holds it, no wait is long enough: nest withLock(), or re-enter inside locks.scope().",
  },
  "this scope": {
    by: "this scope itself, and lent to another body in it or closed to this call (`reentrant: false`),",
    cure: "Bodies that run side by side in one scope have it one after the other; code that the holder waits for gets the lease passed on.",
  },
};

/** What "somebody else" is, where it is not the holder of a lock. */
const OTHERS: Readonly<Record<string, { readonly by: string; readonly cure: string }>> = {
  "Read lock": { by: "a writer, or waited for by one,", cure: HOLDERS["somebody else"].cure },
  Election: { by: "another candidate", cure: "Wait longer; leader() tells which one it is." },
};
