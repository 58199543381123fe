import type { Caller } from "../api/events.ts";
import { failing, isOurs } from "../api/stacks.ts";
import { type LeaseOwner, SharedLease } from "../engine/lease/shared-lease.ts";
import { type Abortable, listen, unlisten } from "../util/abort.ts";
import type { Timer } from "../util/timers.ts";
import type { BatchedTry } from "./lock-kind.ts";
import type { AcquireRequest, Waiting } from "./waiting.ts";

/**
 * A call from its first line to its unlock: first a caller in the line of a place, then the lease
 * that it gets. It is settled once: with what `take` makes of the lease, with null (another client
 * holds the lock), or with an error. It is its own timer, list entry and listener of its signal,
 * because ten thousand of them wait at a time.
 */
export class Lease extends SharedLease implements Waiting, Abortable, Timer {
  wait: number;
  /** How many local hand-offs may come before this caller gets the lock. */
  readonly passes: number;
  readonly batchedTry: BatchedTry | null;
  /** Redis must answer a command that was sent for it, until `at`. */
  isAsked = false;
  /** That command left this process late, so its time limit was extended. */
  isSentLate = false;
  isAsking = false;
  isWarned = false;
  own: Waiting["own"] = null;
  /** Its time; only `Timers` writes these. */
  at = Number.POSITIVE_INFINITY;
  index = -1;
  declare readonly owner: Waited;
  readonly #abort: AbortSignal | undefined;
  /** Null: it is settled. Then nothing here keeps the caller's handle from being collected. */
  #take: ((lease: SharedLease) => unknown) | null;
  #resolve: ((value: unknown) => void) | null;

  constructor(
    place: Waited,
    caller: Caller,
    request: AcquireRequest,
    passes: number,
    take: (lease: SharedLease) => unknown,
    resolve: (value: unknown) => void,
  ) {
    super(place.name, request.terms, place, caller);
    this.wait = request.wait;
    this.passes = passes;
    this.batchedTry = request.batchedTry ?? null;
    this.#abort = request.signal;
    this.#take = take;
    this.#resolve = resolve;
    // A signal of the application's own making may throw: so nothing knows of this caller yet.
    if (request.signal) listen(request.signal, this);
  }

  /** Is it willing to wait? */
  get waits(): boolean {
    return this.wait > 0 || this.isAsking;
  }

  /** When its wait is over, on the monotonic clock. */
  get deadline(): number {
    return this.since + this.wait;
  }

  get settled(): boolean {
    return this.#resolve === null;
  }

  /** It has the lock. */
  give(): void {
    const take = this.#take;
    this.#settle()?.(take?.(this));
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

  aborted(reason: unknown): void {
    if (!this.settled) this.owner.leave(this, reason);
  }

  /** Its time is over: for its wait, or for the answer to its command. */
  ring(): void {
    this.owner.late(this);
  }
}

/** The place in whose line it waits. */
interface Waited extends LeaseOwner {
  readonly name: string;
  leave(caller: Lease, reason: unknown): void;
  late(caller: Lease): void;
}
