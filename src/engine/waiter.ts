import type { Caller, EventKind } from "../api/events.ts";
import { failing, isOurs } from "../api/stacks.ts";
import { type Abortable, unlisten } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { Timer } from "../util/timers.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { BatchedTry } from "./lock-kind.ts";

/**
 * One call that wants the lock. Settled once: with what `take` makes of its lease, with null
 * (another client holds it), or with an error. It is its own timer, list entry and listener of its
 * signal, because ten thousand of them are parked at a time.
 */
export class Waiter extends Timer implements Caller, Abortable {
  readonly call: number;
  readonly kind: EventKind;
  readonly terms: Terms;
  /** ms that the caller is willing to wait, and when the call began. */
  wait: number;
  readonly since = clocks.mono.now();
  /** How often the lock may have been passed on in this process before this caller gets it. */
  readonly passes: number;
  /** Of a try that belongs to a multi-lock. */
  readonly batchedTry: BatchedTry | null;
  readonly signal: AbortSignal | undefined;
  /** Is its first command unanswered? Then `at`, no timer's yet, says when to give up on it. */
  unanswered = false;
  /** Its first command left this process late, and its limit was put off for that. */
  isSentLate = false;
  /**
   * It would not wait, and does so for a moment, because a holder that may have nobody inside is
   * asked.
   */
  isAsking = false;
  /** The warning about waiting for one's own client was given. */
  isWarned = false;
  /**
   * Of a call in a scope: does it wait for that scope itself? Then that is told, and not what
   * `SelfWait` finds.
   */
  own: { readonly isOwn: boolean } | null = null;
  /** The list in which it stands. Only `Line` writes these. */
  group: Group | null = null;
  next: Waiter | null = null;
  previous: Waiter | null = null;
  listed = false;
  readonly #take: (lease: SharedLease) => unknown;
  /** Null: it is settled. */
  #resolve: ((value: unknown) => void) | null;

  constructor(
    { call, kind }: Caller,
    { terms, wait, batchedTry, signal }: AcquireRequest,
    passes: number,
    take: (lease: SharedLease) => unknown,
    resolve: (value: unknown) => void,
  ) {
    super();
    this.call = call;
    this.kind = kind;
    this.terms = terms;
    this.wait = wait;
    this.passes = passes;
    this.batchedTry = batchedTry ?? null;
    this.signal = signal;
    this.#take = take;
    this.#resolve = resolve;
  }

  get units(): number | undefined {
    return this.terms.permits?.units;
  }

  get deadline(): number {
    return this.since + this.wait;
  }

  get settled(): boolean {
    return this.#resolve === null;
  }

  /** Returns whether it was still waiting. */
  give(lease: SharedLease | null): boolean {
    const resolve = this.#resolve;
    if (!resolve) return false;
    this.#resolve = null;
    if (this.signal) unlisten(this.signal, this);
    resolve(lease && this.#take(lease));
    return true;
  }

  /** Returns whether it was still waiting. */
  refuse(error: unknown): boolean {
    const resolve = this.#resolve;
    if (!resolve) return false;
    this.#resolve = null;
    if (this.signal) unlisten(this.signal, this);
    // A part of a multi-lock gets its stack from that, where the caller's line is known.
    const isFailing = this.kind !== "multi" && isOurs(error, this.signal);
    resolve(isFailing ? failing(error) : Promise.reject(error));
    return true;
  }

  /** Its signal aborts: it gets its answer at once. */
  aborted(reason: unknown): void {
    this.group?.leave(this, reason);
  }

  /** Its time to wait is up. */
  override ring(): void {
    this.group?.late(this);
  }
}

/** How a caller comes in. */
export interface AcquireRequest {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /**
   * Whose part it is, of a call that wants several locks, and says itself when it gives up. Left
   * out: a call of its own.
   */
  readonly by?: Caller | undefined;
  /**
   * How often the lock may have been passed on in this process before this caller gets it. Left
   * out: as its kind has it.
   */
  readonly passes?: number | undefined;
  /** It is one of several tries that are sent together, with `wait` 0. */
  readonly batchedTry?: BatchedTry | undefined;
  /** Gets the waiter, of a call that may leave the queue for what its scope does. */
  readonly came?: ((waiter: Waiter) => void) | undefined;
}

/** The acquisition that asks for a waiter. */
interface Group {
  /** Its time is up: of its wait, or of its first command. */
  late(waiter: Waiter): void;
  /** It ends before its time, with this reason. */
  leave(waiter: Waiter, reason: unknown): void;
}

/**
 * How many callers of this client wait, and for how many ms the first of them has; null: none
 * waits.
 */
export function waitingHere(waiters: Iterable<Waiter>): {
  waiting: number;
  longest: number | null;
} {
  const waited = Array.from(waiters, ({ since }) => clocks.mono.now() - since);
  return { waiting: waited.length, longest: waited.length === 0 ? null : Math.max(...waited) };
}
