import type { LockErrorCode } from "./error-codes.ts";
import { type LossReason, lossOf } from "./losses.ts";
import { quote, quoteAll } from "./quote.ts";
import { harmless } from "./util/visible.ts";

export type { LockErrorCode } from "./error-codes.ts";
export type { LossReason } from "./losses.ts";
export { quote, quoteAll, short } from "./quote.ts";

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
    const why = how ?? lossOf(noun, reason, by && quote(by));
    super("LOCK_LOST", lockName, `${noun} ${quote(lockName)} was lost: ${why}.`, cause);
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

  /** `what`: what could not be done; "": `cause` says enough. */
  constructor(lockName: string | null, what: string, cause?: unknown, noun = "Lock") {
    const subject =
      lockName === null ? `${PLURALS[noun] ?? "The locks"} are` : `${noun} ${quote(lockName)} is`;
    // The cause may be such an error of the same lock.
    const why = causeOf(cause).replace(`${subject} unavailable: `, "");
    const text = what && why ? `${what}, because ${why}` : what || why;
    super("LOCK_UNAVAILABLE", lockName, sentence(`${subject} unavailable: ${text}`), cause);
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
      `${noun} ${quote(lockName)} was given back: ${acknowledged} of ${wanted} replicas acknowledged it within \`replicaTimeout\`; see INFO replication on the primary.`,
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
        ? "older than the fence remembers, so a later holder may have been there"
        : `stale, because a later holder was there with ${seen}`;
    super(
      "STALE_TOKEN",
      lockName,
      `Nothing was written to ${quote(resource)}: fencing token ${token} is ${why}; take the lock again.`,
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
      `The transaction on ${quoteAll(keys)} was not executed: another client changed a watched key during each of ${tries} tries; ` +
        "allow more retries, watch fewer keys, or use a lock.",
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
    const why = causeOf(cause);
    super(
      "TRANSACTION_FAILED",
      null,
      sentence(`The transaction on ${quoteAll(keys)} ${what}${why && `: ${why}`}`),
      cause,
    );
  }
}

/** What its holder is told that has given it back. */
export function released(name: string, noun: string): LockError {
  const ended = ENDS[noun] ?? "was unlocked before, so this lease is over: take it again";
  return new LockError("LOCK_RELEASED", name, `${noun} ${quote(name)} ${ended}.`);
}

/** What went wrong before, as part of a message; "": it is no error. */
export const causeOf = (cause: unknown): string => (cause instanceof Error ? cause.message : "");

/** With its full stop. What Redis and connections say ends as it ends. */
export const sentence = (text: string): string => (/[.?!…]$/.test(text) ? text : `${text}.`);

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

/** What gives a thing back, by what messages call it. */
export const endOf = (noun: string): string =>
  noun === "Semaphore" ? "release" : noun === "Election" ? "resign" : "unlock";

const ENDS: Readonly<Record<string, string>> = {
  Semaphore: "has its permits back, so this lease is over: acquire new ones",
  Election: "was resigned, so this term is over: campaign again",
  "The turn of": "is over, because its body has ended",
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
