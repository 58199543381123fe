import type { Caller, EventKind } from "../api/events.ts";
import { failing, isOurs } from "../api/stacks.ts";
import type { BatchedTry } from "../core/lock-kind.ts";
import type { AcquireRequest, Waiting } from "../core/waiting.ts";
import { type Abortable, unlisten } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { Timer } from "../util/timers.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";

/**
 * One call that wants the lock. Settled once: with the result of `take`, with null (another client
 * holds it), or with an error. It is its own timer, list entry and listener of its signal, because
 * ten thousand of them are parked at a time.
 */
export class Waiter extends Timer implements Waiting, Abortable {
  readonly call: number;
  readonly kind: EventKind;
  readonly terms: Terms;
  /** ms that the caller is willing to wait, and when the call began. */
  wait: number;
  readonly since = clocks.mono.now();
  /** How many local hand-offs may come before this caller gets it. */
  readonly passes: number;
  /** Set for a try within a multi-lock. */
  readonly batchedTry: BatchedTry | null;
  readonly signal: AbortSignal | undefined;
  /** Is its first command unanswered? And when to give that command up. */
  unanswered = false;
  until = Number.POSITIVE_INFINITY;
  /** Its first command left this process late, so its time limit was extended. */
  isSentLate = false;
  /** It does not wait, except for a moment while a possibly idle holder is asked. */
  isAsking = false;
  /** The warning about waiting for one's own client was given. */
  isWarned = false;
  /**
   * For a call in a scope: does it wait for that scope itself? Then that is reported instead of the
   * finding of `SelfWait`.
   */
  own: { readonly isOwn: boolean } | null = null;
  /** Its place in the list. Only `Line` writes these. */
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
    // A member of a multi-lock gets its stack from the multi-lock, which knows the caller's line.
    const isFailing = this.kind !== "multi" && isOurs(error, this.signal);
    resolve(isFailing ? failing(error) : Promise.reject(error));
    return true;
  }

  /** Its signal aborts: it gets its answer at once. */
  aborted(reason: unknown): void {
    this.group?.leave(this, reason);
  }

  /** Its time to wait is over. */
  override ring(): void {
    this.group?.late(this);
  }
}

/** The acquisition that asks for a waiter. */
interface Group {
  /** Its time is over: for its wait, or for its first command. */
  late(waiter: Waiter): void;
  /** It ends before its time, with this reason. */
  leave(waiter: Waiter, reason: unknown): void;
}

/**
 * How many of these callers wait, and how many ms the first of them has waited; null: none waits.
 */
export function waitingHere(waiters: Iterable<Waiting>): {
  waiting: number;
  longest: number | null;
} {
  const waited = Array.from(waiters, ({ since }) => clocks.mono.now() - since);
  return { waiting: waited.length, longest: waited.length === 0 ? null : Math.max(...waited) };
}
