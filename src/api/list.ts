import type { HoldingParty, WaitingParty } from "./party.ts";
import { type Checked, checkOptions, checkText, type Rule, refuse, signal } from "./validate.ts";

/**
 * What can be listed, by its keys in Redis: `lock` and `fairLock` share theirs, so both are "lock",
 * and the two locks of a read-write lock are one.
 */
export type ListedKind = "lock" | "readWrite" | "semaphore" | "election" | "remember" | "redisson";

/** What `locks.list()` searches for. */
export interface ListOptions {
  /**
   * A pattern for the names as they were given: `*` matches any text, `?` one character, `[a-z]`
   * one of these, `[^a-z]` any other, and a backslash takes the next character literally. Default:
   * "*".
   */
  match?: string | undefined;
  /**
   * The kind or kinds. Default: all but "redisson", for which every hash of the database is read,
   * since its keys are the bare names.
   */
  kind?: ListedKind | readonly ListedKind[] | undefined;
  /** Ends the listing: it rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
}

/**
 * A lock that is held or waited for, as it was when Redis was asked. Times are ms by the clock of
 * its server.
 */
export interface Listed {
  readonly kind: ListedKind;
  readonly name: string;
  /**
   * At most 1 000, the longest holder first: one, or the readers, or those of a semaphore. Empty:
   * it is free.
   */
  readonly holders: readonly HoldingParty[];
  /** The first of them; null: it is free, and a waiter is about to be notified. */
  readonly holder: HoldingParty | null;
  /** How many ms this one has held it; null: it is free, or not recorded. */
  readonly heldFor: number | null;
  /** ms until its hold ends unless it is renewed; Infinity: no end is set; null: it is free. */
  readonly remaining: number | null;
  /**
   * The waiting processes in order, the next one first; at most 1 000. A client has one place for
   * all its callers, or one for each if the lock is fair. Null: Redis keeps no queue for this kind.
   */
  readonly waiters: readonly WaitingParty[] | null;
  /**
   * Is it held by a client that may cache it, with no caller inside, until another process wants
   * it?
   */
  readonly kept: boolean;
  /** How many permits a semaphore has; null: it is none, or no number is set. */
  readonly permits: number | null;
}

const WHAT = "Cannot list locks";

const KINDS: readonly ListedKind[] = ["lock", "readWrite", "semaphore", "election", "remember", "redisson"];
const isKind = (one: unknown): boolean => KINDS.some((kind) => kind === one);

const kind: Rule<ListedKind | readonly ListedKind[]> = {
  wanted: `one or several of ${KINDS.join(", ")}`,
  fits: (value) => (Array.isArray(value) ? value.length > 0 && value.every(isKind) : isKind(value)),
  type: "string",
  fallback: KINDS.filter((one) => one !== "redisson"),
};

const match: Rule<string> = {
  wanted: "a pattern such as order:*",
  fits: (value) => typeof value === "string",
  fallback: "*",
};

const RULES = { match, kind, signal };

/** No name is longer. */
const PATTERN_MAX = 1_024;

/** @throws TypeError or RangeError for bad options. */
export function checkList(
  options: unknown,
): Checked<typeof RULES> & { readonly kinds: ReadonlySet<ListedKind> } {
  const checked = checkOptions(WHAT, RULES, options);
  checkText(WHAT, "match", checked.match);
  if (checked.match.length > PATTERN_MAX)
    throw refuse(RangeError, WHAT, "match", `at most ${PATTERN_MAX} characters`, checked.match);
  return { ...checked, kinds: new Set([checked.kind].flat()) };
}
