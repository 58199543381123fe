import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { quote, quoteAll } from "../util/quote.ts";
import { harmless, visible } from "../util/visible.ts";
import { type Party, showParty } from "./party.ts";
import { show } from "./validate.ts";
import { type LossReason, lossOf, wordingOf } from "./wording.ts";

/**
 * The codes of all errors of this package. Its process warnings have their own codes:
 * `docs/errors.md`.
 */
export type LockErrorCode =
  | "LOCK_TIMEOUT"
  | "LOCK_LOST"
  | "LOCK_UNAVAILABLE"
  | "LOCK_NOT_REPLICATED"
  | "LOCK_FORMAT"
  | "LOCK_RELEASED"
  | "LOCK_LEFT_BEHIND"
  | "LOCK_ORDER"
  | "LOCK_UPGRADE"
  | "LOCK_WANTED"
  | "DEADLOCK"
  | "PERMITS_DIFFER"
  | "PERMITS_UNKNOWN"
  | "TOO_MANY_HOLDS"
  | "SETTING_DIFFERS"
  | "FINGERPRINT_DIFFERS"
  | "RESULT_NOT_STORABLE"
  | "QUORUM_TWIN"
  | "NO_MESSAGES"
  | "LISTENER_FAILED"
  | "BODY_FAILED"
  | "STALE_TOKEN"
  | "FENCED_WRITE_FAILED"
  | "CLIENT_CLOSED"
  | "CONFLICT"
  | "TRANSACTION_FAILED";

/**
 * What every error of this package has: a stable `code`, the lock's name (null: no single lock),
 * and the cause.
 */
export class LockError extends Error {
  override readonly name: string = "LockError";

  constructor(
    readonly code: LockErrorCode,
    readonly lockName: string | null,
    message: string,
    cause?: unknown,
  ) {
    // Some messages quote Redis and connections as they are.
    super(harmless(message), cause === undefined ? undefined : { cause });
  }
}

/**
 * `lock()` or `withLock()` waited for `wait` ms while another caller held the lock. For a
 * multi-lock, the named member was held when the time was over; for a semaphore, too few permits
 * were free; for an election, others led. Nothing is left in Redis.
 */
export class LockTimeoutError extends LockError {
  override readonly name = "LockTimeoutError";

  /**
   * `members`: how many locks the call wanted together. `units`: how many permits of a semaphore;
   * 0: it is a lock.
   */
  constructor(
    lockName: string,
    /** How long the call was willing to wait, in ms. */
    readonly wait: number,
    members = 1,
    /**
     * Where the holder was when the time was over: in this scope, which had lent the lock to
     * another body, or whose hold this call did not enter (`reentrant: false`); in this process, by
     * the same client; or elsewhere, also by another client of this process. As far as this client
     * knows without a round trip. For a semaphore always "somebody else".
     */
    readonly heldBy: "this scope" | "this process" | "somebody else" = "somebody else",
    units = 0,
    noun = "Lock",
    /**
     * The holder that one query found after the time was over, with its label, host and pid. Null:
     * the lock was free at that moment, or Redis did not answer within 100 ms. Of a semaphore, and
     * of readers, one of them.
     */
    readonly holder: Party | null = null,
    /** Why no messages arrive, so that the call may have missed the lock; null: they do. */
    deaf: string | null = null,
  ) {
    const what = `${noun} ${quote(lockName)}${members > 1 ? `, one of ${members} that this call wants together,` : ""}`;
    const { held, beside } = wordingOf(noun);
    const who = holderOf(heldBy, noun, holder);
    const isNow = wait === 0;
    const busy =
      units > 0
        ? `${isNow ? "has" : "had"} too few free permits for this call (wants ${units})`
        : `${isNow ? "is already" : "was still"} ${held} ${who}`;
    const end = isNow ? ", and `wait` is 0" : `${beside && ","} when \`wait\` (${duration(wait)}) was over`;
    const others = units > 0 && holder ? `${who} has some` : "";
    const cure = isNow ? "" : cureOf(heldBy, noun);
    const missed =
      deaf === null ? "" : `no messages arrive, so the lock may have been free meanwhile (${deaf})`;
    const then = [others, cure, missed].filter((text) => text !== "").join("; ");
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
  const { other, beside } = wordingOf(noun);
  return holder ? showParty(holder) + beside : other;
}

/** What a caller that has waited can do. */
function cureOf(heldBy: LockTimeoutError["heldBy"], noun: string): string {
  if (heldBy === "this scope") return "concurrent bodies of one scope get it one after the other";
  const { cure, cureHere } = wordingOf(noun);
  return heldBy === "this process" ? cureHere : cure;
}

/**
 * The lock may no longer be held: stop the protected work. `cause` = the body's error, if it had
 * one.
 */
export class LockLostError extends LockError {
  override readonly name = "LockLostError";
  readonly #how: string | undefined;
  readonly #noun: string;

  /**
   * `how`: details beyond the reason, if known. `noun`: what messages call the thing that was lost.
   */
  constructor(
    lockName: string,
    /** Why it is no longer held: `docs/errors.md` explains each, and what to do. */
    readonly reason: LossReason,
    cause?: unknown,
    how?: string,
    /**
     * Reason "revoked": the `label` of the caller of `forceUnlock`; null when it gave none. Null
     * for every other reason.
     */
    readonly by: string | null = null,
    noun = "Lock",
  ) {
    const why = how ?? lossOf(noun, reason, by && quote(by));
    super("LOCK_LOST", lockName, `${noun} ${quote(lockName)} was lost: ${why}.`, cause);
    this.#how = how;
    this.#noun = noun;
  }

  /** The same loss, with the error of the stopped work. @internal */
  causedBy(error: unknown): LockLostError {
    return new LockLostError(this.lockName ?? "", this.reason, error, this.#how, this.by, this.#noun);
  }
}

/**
 * Another caller waits for the lock: the reason of `lease.wanted`. Nothing has failed, and the lock
 * is still held. Work that stops because of it rejects with it.
 */
export class LockWantedError extends LockError {
  override readonly name = "LockWantedError";
  readonly #since: number;

  /** `since`: when the waiter first became known, on the monotonic clock. */
  constructor(lockName: string, since: number, noun = "Lock") {
    super(
      "LOCK_WANTED",
      lockName,
      `${noun} ${quote(lockName)} is wanted by another caller: give it back soon.`,
    );
    this.#since = since;
  }

  /**
   * How many ms ago the waiter became known. A caller of another process may have waited for
   * longer.
   */
  get waited(): number {
    return clocks.mono.now() - this.#since;
  }
}

/** Redis did not give a usable answer, so nothing is known about the lock. `cause` says what happened. */
export class LockUnavailableError extends LockError {
  override readonly name = "LockUnavailableError";

  /** `what`: the action that failed; "": `cause` is enough. */
  constructor(lockName: string | null, what: string, cause?: unknown, noun = "Lock") {
    const subject = lockName === null ? `${wordingOf(noun).plural} are` : `${noun} ${quote(lockName)} is`;
    // The cause may be the same error about the same lock.
    const why = causeOf(cause).replace(`${subject} unavailable: `, "");
    const text = what && why ? `${what}, because ${why}` : what || why;
    super("LOCK_UNAVAILABLE", lockName, sentence(`${subject} unavailable: ${text}`), cause);
  }
}

/**
 * The lock's key holds a value that another version of this package wrote, in a format that this
 * one cannot read. Nothing was changed.
 */
export class LockFormatError extends LockError {
  override readonly name = "LockFormatError";
  /** The format that was found, and the one that this version knows. */
  readonly found: number;
  readonly known = LOCK_FORMAT;

  constructor(lockName: string | null, found: number, cause?: unknown, noun = "Lock") {
    const which = lockName === null ? "A lock" : `${noun} ${quote(lockName)}`;
    super(
      "LOCK_FORMAT",
      lockName,
      `${which} is held in format ${found}, and this version of Holdfast reads format ${LOCK_FORMAT}: ` +
        "use versions of one format on one Redis; nothing was changed.",
      cause,
    );
    this.found = found;
  }
}

/** The format of the lock's value in Redis that this version reads and writes. */
const LOCK_FORMAT = 1;

/**
 * The result that is remembered belongs to another `fingerprint`: the same name was used for
 * something else. The body did not run.
 */
export class FingerprintError extends LockError {
  override readonly name = "FingerprintError";

  constructor(name: string) {
    super(
      "FINGERPRINT_DIFFERS",
      name,
      `The result of ${quote(name)} belongs to another fingerprint: use another name for another request.`,
    );
  }
}

/**
 * The body has run, and its value could not be stored: it is no JSON, or too long. It is remembered
 * that the body has run, and every other caller gets this error too until `keep` ends, or
 * `forget()`.
 */
export class ResultError extends LockError {
  override readonly name = "ResultError";
  /** What the body returned, only for the caller whose body it was. Not enumerable. */
  declare readonly value: unknown;

  constructor(name: string, why: string, value?: unknown, cause?: unknown) {
    super(
      "RESULT_NOT_STORABLE",
      name,
      `The body of ${quote(name)} has run, but its value could not be stored: ${why}.`,
      cause,
    );
    Object.defineProperty(this, "value", { value });
  }
}

/**
 * The lock was taken, but fewer replicas than the client's `replicas` acknowledged it within
 * `replicaTimeout`: it was given back, because a failover could lose it. In an `error` event of
 * `remember`: the same for a result, which is stored.
 */
export class NotReplicatedError extends LockError {
  override readonly name = "NotReplicatedError";

  constructor(
    lockName: string,
    /** How many replicas had to have it. */
    readonly wanted: number,
    /** How many had it in time. */
    readonly acknowledged: number,
    noun = "Lock",
    did = "was given back",
  ) {
    super(
      "LOCK_NOT_REPLICATED",
      lockName,
      `${noun} ${quote(lockName)} ${did}: ${acknowledged} of ${wanted} replicas acknowledged it within \`replicaTimeout\`; see INFO replication on the primary.`,
    );
  }
}

/**
 * A semaphore has another number of permits than the caller's code says (`PERMITS_DIFFER`), or
 * fewer than the caller wants; or it has no number yet (`PERMITS_UNKNOWN`). The caller has no
 * permits, and is not in the queue.
 */
export class PermitsError extends LockError {
  override readonly name = "PermitsError";

  constructor(
    lockName: string,
    /** How many permits there are. Null: no number was set. */
    readonly stored: number | null,
    /** How many there are by the caller's code. Null: it gives none. */
    readonly given: number | null,
    /** How many the caller wants. */
    readonly units: number,
  ) {
    const mine = given === null ? "" : ` of ${given}`;
    const why =
      stored === null
        ? "no number of permits yet: give locks.semaphore() its { permits }, or call setPermits() once."
        : `${stored} permit${stored === 1 ? "" : "s"}, and this caller wants ${units}${mine}: ` +
          "give the same number in all code, or call setPermits(), whose number counts for all callers.";
    super(
      stored === null ? "PERMITS_UNKNOWN" : "PERMITS_DIFFER",
      lockName,
      `Semaphore ${quote(lockName)} has ${why}`,
    );
  }
}

/** One lock of a deadlock: callers that wait for each other in a circle. */
export interface DeadlockLink {
  readonly name: string;
  readonly kind: "lock" | "readWrite" | "semaphore" | "remember";
  /** The hold in the way: its caller waits for the next lock of the circle. */
  readonly holder: Party;
}

/**
 * The call waited for a lock whose holder waits, perhaps through others, for a lock that the call's
 * own scope holds, and this call was the last to begin waiting. It stops waiting, so that the
 * others can continue when its scope ends. Only for a client with `deadlocks: "reject"`.
 */
export class DeadlockError extends LockError {
  override readonly name = "DeadlockError";

  constructor(
    lockName: string,
    /** From the lock that this call waited for to the one that its own scope holds. */
    readonly cycle: readonly DeadlockLink[],
  ) {
    super(
      "DEADLOCK",
      lockName,
      `Lock ${quote(lockName)} is not waited for any more, because of a deadlock: ${circleText(cycle)}`,
    );
  }
}

/** The text for messages, with what to do about it. */
export function circleText(cycle: readonly DeadlockLink[]): string {
  const last = cycle.length - 1;
  const links = cycle.map(({ name, holder }, i) =>
    i === last
      ? `${quote(name)}, held by the scope of this call`
      : `${quote(name)}, held by ${showParty(holder)}, which waits for `,
  );
  return `${links.join("")}; take such locks in one order everywhere, or all of them by one multiLock().`;
}

/**
 * The resource has seen a larger fencing token: a later holder has written. Nothing was written
 * now.
 */
export class StaleTokenError extends LockError {
  override readonly name = "StaleTokenError";

  constructor(
    lockName: string | null,
    /** What the fence protects. */
    readonly resource: string,
    /** The token that was refused. */
    readonly token: number,
    /**
     * The highest token seen; null: it was forgotten, and this token is so old that it may be
     * smaller.
     */
    readonly seen: number | null,
  ) {
    const why =
      seen === null
        ? "older than the fence remembers, so a later holder may have written"
        : `stale, because a later holder has used ${seen}`;
    super(
      "STALE_TOKEN",
      lockName,
      `Nothing was written to ${quote(resource)}: fencing token ${token} is ${why}; take the lock again.`,
    );
  }
}

/**
 * Redis did not confirm a fenced write. `cause` says what happened. Without a reply, it may have
 * been written.
 */
export class FencedWriteError extends LockError {
  override readonly name = "FencedWriteError";

  constructor(
    lockName: string | null,
    /** What the fence protects. */
    readonly resource: string,
    cause: unknown,
  ) {
    const text = `The fenced write to ${quote(resource)} was not confirmed: ${causeOf(cause) || String(cause)}`;
    super("FENCED_WRITE_FAILED", lockName, sentence(text), cause);
  }
}

/** The client was closed before or during the call. */
export class ClientClosedError extends LockError {
  override readonly name = "ClientClosedError";

  constructor(lockName: string | null) {
    const what = lockName === null ? "This" : `Could not use ${quote(lockName)}: this`;
    super("CLIENT_CLOSED", lockName, `${what} lock client is closed; create a new one.`);
  }
}

/** `optimistic`: another client changed one of the keys during every try. Nothing was written. */
export class ConflictError extends LockError {
  override readonly name = "ConflictError";

  constructor(
    /** The keys that the transaction watched. */
    readonly keys: readonly string[],
    /** How often the body ran: `retries` + 1. */
    readonly tries: number,
  ) {
    super(
      "CONFLICT",
      null,
      `The transaction on ${quoteAll(keys)} was not executed: another client changed a watched key during each of ${tries} tries; ` +
        "allow more retries, watch fewer keys, or use a lock.",
    );
  }
}

/**
 * `optimistic`: Redis did not execute a transaction as a whole. `executed` says what was executed.
 */
export class TransactionError extends LockError {
  override readonly name = "TransactionError";

  constructor(
    /** The keys that the transaction watched. */
    readonly keys: readonly string[],
    /**
     * "nothing": no command of the transaction was executed; "partly": some were, and those that
     * failed are the errors in `replies`; "unknown": EXEC was sent and its answer never came.
     */
    readonly executed: "nothing" | "partly" | "unknown",
    what: string,
    cause?: unknown,
    /**
     * EXEC's answer to each command, an Error for each that failed. Empty when there is no such
     * answer.
     */
    readonly replies: readonly unknown[] = [],
  ) {
    const why = causeOf(cause);
    super(
      "TRANSACTION_FAILED",
      null,
      sentence(`The transaction on ${quoteAll(keys)} ${what}${why && `: ${why}`}`),
      cause,
    );
  }
}

/** The error for a holder that has already given it back. */
export function released(name: string, noun: string): LockError {
  return new LockError("LOCK_RELEASED", name, `${noun} ${quote(name)} ${wordingOf(noun).ended}.`);
}

// For `error` events about an error that the application's own code threw with no caller to receive
// it; `cause` is that error.

/** A listener for an event of a client. `name`: of the lock; null: the event concerns no lock. */
export function listenerFailed(event: string, name: string | null, thrown: unknown): LockError {
  const about = name === null ? "" : ` of ${quote(name)}`;
  const text = `A listener for the event '${event}'${about} failed: ${causeOf(thrown) || show(thrown)}`;
  return new LockError("LISTENER_FAILED", name, sentence(text), thrown);
}

/** The body of a leader after the loss of its term: another term has begun, or will. */
export function bodyFailed(name: string, thrown: unknown): LockError {
  const text = `The body of runAsLeader for election ${quote(name)} failed after its term was lost: ${causeOf(thrown) || show(thrown)}`;
  return new LockError("BODY_FAILED", name, sentence(text), thrown);
}

/** The cause as part of a message; "": it is no error. */
const causeOf = (cause: unknown): string => (cause instanceof Error ? cause.message : "");

/** Ends with a full stop. Messages of Redis and connections keep their own end. */
export const sentence = (text: string): string => (/[.?!…]$/.test(text) ? text : `${text}.`);

/**
 * Is this error, or one that it wraps, a lost lock? Looks through `cause`, AggregateError, and the
 * SuppressedError that `await using` makes when both the body and the release throw.
 *
 * @example
 * try { await sell(); } catch (error) { if (!isLockLost(error)) throw error; console.log("try again"); }
 */
export function isLockLost(error: unknown): boolean {
  const seen = new Set<unknown>();
  const look = (one: unknown): boolean => {
    if (typeof one !== "object" || one === null || seen.has(one)) return false;
    seen.add(one);
    if (one instanceof LockLostError || ("code" in one && one.code === "LOCK_LOST")) return true;
    const { error: inner, suppressed, cause, errors } = one as Record<string, unknown>;
    return [inner, suppressed, cause, ...(Array.isArray(errors) ? errors : [])].some(look);
  };
  return look(error);
}
