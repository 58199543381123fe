import { type LossReason, lossOf } from "./losses.ts";
import { harmless, piecesOf, visible } from "./util/visible.ts";

export type { LossReason } from "./losses.ts";

/** The codes of all errors of this package. Its process warnings have codes of their own too: `docs/errors.md`. */
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
  | "QUORUM_TWIN"
  | "STALE_TOKEN"
  | "FENCED_WRITE_FAILED"
  | "CLIENT_CLOSED"
  | "CONFLICT"
  | "TRANSACTION_FAILED";

/** What every error of this package has: a stable `code`, the lock's name (null: no single lock), and the cause. */
export class LockError extends Error {
  override readonly name: string = "LockError";

  constructor(
    readonly code: LockErrorCode,
    readonly lockName: string | null,
    message: string,
    cause?: unknown,
  ) {
    // What Redis and connections say is part of some messages, as it came.
    super(harmless(message), cause === undefined ? undefined : { cause });
  }
}

/** The lock is no longer surely held: stop the protected work. `cause` = the body's error, if it had one. */
export class LockLostError extends LockError {
  override readonly name = "LockLostError";
  readonly #how: string | undefined;
  readonly #noun: string;

  /** `how`: what is known of it, where that is more than the reason. `noun`: what messages call the thing that was lost. */
  constructor(
    lockName: string,
    /** Why it is no longer held: `docs/errors.md` says what each means, and what to do. */
    readonly reason: LossReason,
    cause?: unknown,
    how?: string,
    /** Reason "revoked": the `label` of the caller of `forceUnlock`; null when it gave none. Null for every other reason. */
    readonly by: string | null = null,
    noun = "Lock",
  ) {
    const culprit = by === null ? "" : ` Called by ${quote(by)}.`;
    const why = how ?? lossOf(noun, reason);
    super("LOCK_LOST", lockName, `${noun} ${quote(lockName)} was lost: ${why}${culprit}`, cause);
    this.#how = how;
    this.#noun = noun;
  }

  /** The same loss, with the error of the work that it has stopped. @internal */
  causedBy(error: unknown): LockLostError {
    return new LockLostError(this.lockName ?? "", this.reason, error, this.#how, this.by, this.#noun);
  }
}

/** Redis did not give a usable answer, so nothing is known about the lock. `cause` says what happened. */
export class LockUnavailableError extends LockError {
  override readonly name = "LockUnavailableError";

  constructor(lockName: string | null, what: string, cause?: unknown, noun = "Lock") {
    const why = cause instanceof Error ? `: ${cause.message}` : "";
    const unavailable =
      lockName === null ? `${PLURALS[noun] ?? "The locks"} are` : `${noun} ${quote(lockName)} is`;
    super("LOCK_UNAVAILABLE", lockName, `${unavailable} unavailable: ${what}${why}`, cause);
  }
}

/**
 * In the key of the lock stands what another version of this package has written, in a format that this one cannot read.
 * Nothing was changed.
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
      `${which} is held in format ${found}, and this version of Holdfast knows format ${LOCK_FORMAT}: ` +
        "let the versions that share a Redis know the same format. Nothing was changed.",
      cause,
    );
    this.found = found;
  }
}

/** The format of the lock's value in Redis that this version reads and writes. */
const LOCK_FORMAT = 1;

/**
 * The lock was taken, but fewer replicas than the client's `replicas` acknowledged it within `replicaTimeout`: it was
 * given back, because a failover could lose it.
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
  ) {
    super(
      "LOCK_NOT_REPLICATED",
      lockName,
      `${noun} ${quote(lockName)} was given back: ${acknowledged} of the ${wanted} replicas that must have it acknowledged it in time.`,
    );
  }
}

/** The resource has seen a larger fencing token: a later holder was there. Nothing was written. */
export class StaleTokenError extends LockError {
  override readonly name = "StaleTokenError";

  constructor(
    lockName: string | null,
    /** What the fence protects. */
    readonly resource: string,
    /** The token that was refused. */
    readonly token: number,
    /** The highest token seen; null: it is forgotten, and this token is so old that it may be below it. */
    readonly seen: number | null,
  ) {
    const why =
      seen === null
        ? "it was given longer ago than the fence remembers, so a larger one may have been seen and forgotten"
        : `${seen} has been seen, so a later holder was there`;
    super(
      "STALE_TOKEN",
      lockName,
      `Nothing was written to ${quote(resource)}: the fencing token ${token} is stale; ${why}. Take the lock again.`,
    );
  }
}

/** Redis did not confirm a fenced write. `cause` says what happened; without a reply, it may have been written. */
export class FencedWriteError extends LockError {
  override readonly name = "FencedWriteError";

  constructor(
    lockName: string | null,
    /** What the fence protects. */
    readonly resource: string,
    cause: unknown,
  ) {
    const why = `was not confirmed: ${cause instanceof Error ? cause.message : String(cause)}`;
    super("FENCED_WRITE_FAILED", lockName, `The fenced write to ${quote(resource)} ${why}`, cause);
  }
}

/** The client was closed before or during the call. */
export class ClientClosedError extends LockError {
  override readonly name = "ClientClosedError";

  constructor(lockName: string | null) {
    super("CLIENT_CLOSED", lockName, "This lock client is closed: create a new one.");
  }
}

/** `optimistic`: somebody else changed one of the keys during every try. Nothing was written. */
export class ConflictError extends LockError {
  override readonly name = "ConflictError";

  constructor(
    /** Those that the transaction watched. */
    readonly keys: readonly string[],
    /** How often the body ran: `retries` + 1. */
    readonly tries: number,
  ) {
    super(
      "CONFLICT",
      null,
      `The transaction on ${quoteAll(keys)} was not executed: others changed a key that it watches during each of ${tries} tries. ` +
        "Allow more retries, watch fewer keys, or use a lock where many write.",
    );
  }
}

/** `optimistic`: Redis did not execute a transaction as a whole. `executed` tells what is true in Redis now. */
export class TransactionError extends LockError {
  override readonly name = "TransactionError";

  constructor(
    /** Those that the transaction watched. */
    readonly keys: readonly string[],
    /**
     * "nothing": no command of the transaction was executed; "partly": some were, and those that failed are the errors in
     * `replies`; "unknown": EXEC was sent and its answer never came.
     */
    readonly executed: "nothing" | "partly" | "unknown",
    what: string,
    cause?: unknown,
    /** What EXEC answered to each command, an Error for each that failed. Empty when there is no such answer. */
    readonly replies: readonly unknown[] = [],
  ) {
    const why = cause instanceof Error ? `: ${cause.message}` : "";
    super("TRANSACTION_FAILED", null, `The transaction on ${quoteAll(keys)} ${what}${why}`, cause);
  }
}

/** What its holder is told that has given it back. */
export function released(name: string, noun: string): LockError {
  return new LockError(
    "LOCK_RELEASED",
    name,
    `${noun} ${quote(name)} ${ENDS[noun] ?? "was unlocked: this lease is over."}`,
  );
}

/** What messages call a thing, by its kind. Only an error asks. */
export function nounOf({ protocol, mode }: Kind): string {
  if (mode) return mode === "read" ? "Read lock" : "Write lock";
  return NOUNS[protocol] ?? "Lock";
}

interface Kind {
  readonly protocol: string;
  readonly mode?: "read" | "write" | undefined;
}

const NOUNS: Readonly<Record<string, string>> = {
  semaphore: "Semaphore",
  election: "Election",
  once: "The turn of",
};

const PLURALS: Readonly<Record<string, string>> = { Semaphore: "The semaphores", "The turn of": "The turns" };

const ENDS: Readonly<Record<string, string>> = {
  Semaphore: "has its permits back: this lease is over.",
  Election: "was resigned: this term is over.",
  "The turn of": "is over: its body has ended.",
};

/**
 * Is this error, or one that it wraps, a lost lock? Looks through `cause`, AggregateError, and the SuppressedError
 * that `await using` makes when both the body and the release throw.
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

/** Several names as messages show them: the first few. */
export function quoteAll(names: readonly string[]): string {
  if (names.length <= 4) return names.map(quote).join(", ");
  return `${quoteAll(names.slice(0, 3))} and ${names.length - 3} more`;
}

/** A name as messages show it: quoted, escaped, never longer than a line. */
export const quote = (name: string): string =>
  `'${short(visible(name.slice(0, 4 * SHORT)).replaceAll("'", "\\'"))}'`;

/** The first 99 characters of a text that is escaped, and of no escape a part. */
export function short(text: string): string {
  if (text.length <= SHORT) return text;
  let kept = "";
  for (const one of piecesOf(text)) {
    if (kept.length + one.length >= SHORT) break;
    kept += one;
  }
  return `${kept}…`;
}

const SHORT = 100;
