import type { Caller, EventKind } from "../api/events.ts";
import { failing, isOurs } from "../api/stacks.ts";
import { SELF_WAIT_LEASES } from "../defaults.ts";
import { type Abortable, listen, unlisten } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import type { Linked } from "../util/linked-list.ts";
import type { Timer } from "../util/timers.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { BatchedTry } from "./lock-kind.ts";

/**
 * A caller in the line of a place, until it has its result: a lease, null (another client holds the
 * lock), or an error. It is its own timer, link and listener of its signal, because ten thousand of
 * them wait at a time.
 */
export class Waiter implements Caller, Abortable, Linked, Timer {
  list: object | null = null;
  next: this | null = null;
  previous: this | null = null;
  readonly call: number;
  readonly kind: EventKind;
  readonly terms: Terms;
  /** ms that it is willing to wait, and when its call began. */
  wait: number;
  readonly since = clocks.mono.now();
  /** How many local hand-offs may come before this caller gets the lock. */
  readonly passes: number;
  readonly batchedTry: BatchedTry | null;
  /** Redis must answer a command that was sent for it, until `at`. */
  isUnanswered = false;
  /** That command left this process late, so its time limit was extended. */
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
  /** Its time; only `Timers` writes these. */
  at = Number.POSITIVE_INFINITY;
  index = -1;
  readonly #place: Waited;
  readonly #abort: AbortSignal | undefined;
  /** Null: it is settled. Then nothing here keeps the caller's handle from being collected. */
  #take: ((lease: SharedLease) => unknown) | null;
  #resolve: ((value: unknown) => void) | null;

  constructor(
    place: Waited,
    { call, kind }: Caller,
    request: AcquireRequest,
    passes: number,
    take: (lease: SharedLease) => unknown,
    resolve: (value: unknown) => void,
  ) {
    this.call = call;
    this.kind = kind;
    this.terms = request.terms;
    this.wait = request.wait;
    this.passes = passes;
    this.batchedTry = request.batchedTry ?? null;
    this.#place = place;
    this.#abort = request.signal;
    this.#take = take;
    this.#resolve = resolve;
    // A signal of the application's own making may throw: so nothing knows of this caller yet.
    if (request.signal) listen(request.signal, this);
  }

  /** Of a semaphore: how many permits it wants. */
  get units(): number | undefined {
    return this.terms.permits?.units;
  }

  /** Is it willing to wait? */
  get waits(): boolean {
    return this.wait > 0 || this.isAsking;
  }

  /** When its wait is over, on the monotonic clock. */
  get deadline(): number {
    return this.since + this.wait;
  }

  /** It has its result. */
  get settled(): boolean {
    return this.#resolve === null;
  }

  /** It has the lock. */
  give(lease: SharedLease): void {
    const take = this.#take;
    this.#settle()?.(take?.(lease));
  }

  /**
   * It needs no lock: this is what its call resolves with. Returns whether it was still waiting.
   */
  serve(value: unknown): boolean {
    const resolve = this.#settle();
    resolve?.(value);
    return resolve !== null;
  }

  /** It gets no lock. Null: another client holds it. Returns whether it was still waiting. */
  refuse(error: unknown): boolean {
    const resolve = this.#settle();
    if (!resolve) return false;
    if (error === null) resolve(null);
    else {
      // A member of a multi-lock gets its stack from the multi-lock, which knows the caller's line.
      const isFailing = this.kind !== "multi" && isOurs(error, this.#abort);
      resolve(isFailing ? failing(error) : Promise.reject(error));
    }
    return true;
  }

  #settle(): ((value: unknown) => void) | null {
    const resolve = this.#resolve;
    this.#resolve = null;
    this.#take = null;
    this.own = null;
    if (resolve && this.#abort) unlisten(this.#abort, this);
    return resolve;
  }

  /** Its wait ends now, with this reason. */
  aborted(reason: unknown): void {
    if (!this.settled) this.#place.leave(this, reason);
  }

  /** Its time is over: for its wait, or for the answer to its command. */
  ring(): void {
    this.#place.late(this);
  }
}

/** A caller's request. */
export interface AcquireRequest {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /**
   * The call that this is part of: it wants several locks, and reports itself when it gives up.
   * Left out: a call of its own.
   */
  readonly by?: Caller | undefined;
  /** How many local hand-offs may come before this caller gets it. Left out: its kind's number. */
  readonly passes?: number | undefined;
  /** It is one of several tries that are sent together, with `wait` 0. */
  readonly batchedTry?: BatchedTry | undefined;
  /** Receives the caller, for a call that may leave the queue because of its scope. */
  readonly came?: ((caller: Waiter) => void) | undefined;
}

/** The place in whose line it waits. */
interface Waited {
  leave(caller: Waiter, reason: unknown): void;
  late(caller: Waiter): void;
}

/**
 * When a wait for a lock of the caller's own process has been long enough to call it a deadlock.
 */
export const selfWaitAt = ({ since, terms }: Waiter): number => since + SELF_WAIT_LEASES * terms.lease;

/**
 * The first of these callers that the code holding the lock may have made: a caller that came
 * before the holder got the lock is simply queueing.
 */
export function selfWaiter(callers: Iterable<Waiter>, lease: SharedLease): Waiter | null {
  for (const waiter of callers) if (waiter.since >= lease.since && !waiter.own?.isOwn) return waiter;
  return null;
}

/**
 * How many of these callers wait, and how many ms the first of them has waited; null: none waits.
 */
export function waitingHere(waiters: Iterable<Waiter>): { waiting: number; longest: number | null } {
  const waited = Array.from(waiters, ({ since }) => clocks.mono.now() - since);
  return { waiting: waited.length, longest: waited.length === 0 ? null : Math.max(...waited) };
}
