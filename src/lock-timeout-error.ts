import { LockError } from "./errors.ts";
import { type Party, showParty } from "./party.ts";
import { duration } from "./util/duration.ts";
import { quote } from "./util/quote.ts";
import { visible } from "./util/visible.ts";

/**
 * `lock()` or `withLock()` waited for `wait` ms and another caller held the lock all the time; of a multi-lock, held the
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
     * The holder, as one look after the end of the time has shown it: with its label, host and pid. Null: the lock was free at that
     * moment, or Redis did not say so within 100 ms. Of a semaphore, and of readers, one of them.
     */
    readonly holder: Party | null = null,
  ) {
    const what = `${noun} ${quote(lockName)}${members > 1 ? `, one of ${members} that this call wants together,` : ""}`;
    const who = holderOf(heldBy, noun, holder);
    const isNow = wait === 0;
    const busy =
      units > 0
        ? `${isNow ? "has" : "had"} too few free permits for this call (wants ${units})`
        : `${isNow ? "is already" : "was still"} ${noun === "Election" ? "led" : "held"} by ${who}`;
    const end = isNow
      ? ", and `wait` is 0"
      : `${noun === "Read lock" ? "," : ""} when \`wait\` (${duration(wait)}) was over`;
    const others = units > 0 && holder ? `${who} has some` : "";
    const cure = isNow ? "" : cureOf(heldBy, noun, units);
    const then = [others, cure].filter((text) => text !== "").join("; ");
    super("LOCK_TIMEOUT", lockName, `${what} ${busy}${end}${then && `: ${then}`}.`);
  }
}

/** As messages name it. */
function holderOf(heldBy: LockTimeoutError["heldBy"], noun: string, holder: Party | null): string {
  if (heldBy === "this scope") return "this scope, for another body or with `reentrant: false`,";
  if (heldBy === "this process") {
    const label = holder && holder.label !== null ? `${visible(holder.label)}, ` : "";
    return `this process (${label}pid ${process.pid})`;
  }
  const isReader = noun === "Read lock";
  if (holder) return `${showParty(holder)}${isReader ? ", or waited for by a writer" : ""}`;
  if (isReader) return "a writer, or waited for by one";
  return noun === "Election" ? "another candidate" : "another caller";
}

/** What a caller can do that has waited. */
function cureOf(heldBy: LockTimeoutError["heldBy"], noun: string, units: number): string {
  if (heldBy === "this scope") return "bodies that run side by side in one scope have it one after the other";
  if (heldBy === "this process")
    return "if this call comes from the code that holds it, nest withLock(), or re-enter inside locks.scope()";
  if (noun === "Election") return "wait longer, or ask leader() who leads";
  return `wait longer, hold ${units > 0 ? "them for a shorter time, or use tryAcquire()" : "it for a shorter time, or use tryLock()"} and treat null as busy`;
}
