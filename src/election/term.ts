import { type LockLostError, nounOf, released, short } from "../errors.ts";
import type { FollowedHolds } from "../events.ts";
import type { ElectionKind } from "../kinds/election.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { lockHandle } from "../locks/lease.ts";
import { unavailable } from "../redis/replies.ts";
import { printAs } from "../util/print.ts";
import { thrownAt } from "../util/stacks.ts";
import { visible } from "../util/visible.ts";
import { checkProclaimed } from "./options.ts";

/**
 * The time of one leader, from its election to its end. The watchdog renews it. End it with `resign()`, or let `await using` do so.
 *
 * That a client leads is what it believes: a process that stands still goes on believing so for a moment when it wakes up. The
 * token is the proof. Send it along with every write, as with a lease; `fencedSet` takes a term as its `fence`.
 *
 * @example
 * await using term = await election.campaign({ value: "10.0.0.7:8080" });
 * await work({ signal: term.signal, fence: term.token });
 */
export interface Term {
  /** The election's name. */
  readonly name: string;
  /** The fencing token: grows from term to term, below 2^53. */
  readonly token: number;
  /** What was proclaimed last, also when Redis has not confirmed it yet. */
  readonly value: string;
  /** Aborts with a LockLostError as soon as this client does not surely lead any more; never when it resigns. */
  readonly signal: AbortSignal;
  /** Does this client surely lead at this moment? Computed from both clocks, without asking Redis. */
  readonly held: boolean;
  /** Why the term was lost. Null: it was not. */
  readonly lost: LockLostError | null;
  /**
   * The line to put before what only a leader may do: it knows of an end that passed before any timer could fire.
   *
   * @throws LockLostError when the term is lost, LockError `LOCK_RELEASED` after `resign()`.
   */
  assertHeld(): void;
  /** ms until the term is lost unless it is renewed; 0 when it is not held. */
  readonly remaining: number;
  /**
   * Tells observers another value. Proclamations are numbered, so a late copy of an earlier one changes nothing.
   *
   * @param value at most 4 096 bytes of UTF-8.
   * @throws TypeError or RangeError for a bad value; LockLostError when the term is lost; LockUnavailableError when Redis did not
   *   confirm it, which the next renewals do; LockError `LOCK_RELEASED` after `resign()`.
   * @example
   * await term.proclaim("10.0.0.7:8081");
   */
  proclaim(value: string): Promise<void>;
  /**
   * Ends the term; at once to the next candidate, if there is one. Calling it again does nothing.
   *
   * @throws LockLostError, once, when the term had been lost before; LockUnavailableError when Redis did not confirm (it is tried
   *   again in the background until the term is over).
   */
  resign(): Promise<void>;
  /** `await using`: the same as `resign()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A term whose leader has the lock of its election. */
export class LeaderTerm implements Term {
  readonly name: string;
  readonly token: number;
  readonly #shared: SharedLease;
  readonly #lease: ReturnType<typeof lockHandle>;
  readonly #kind: ElectionKind;
  /** Ends its work too, besides a loss. */
  readonly #ending: AbortSignal | undefined;
  #signal: AbortSignal | null = null;
  #value = "";

  constructor(shared: SharedLease, kind: ElectionKind, ending: AbortSignal | undefined) {
    this.name = shared.name;
    this.token = shared.token;
    this.#shared = shared;
    this.#lease = lockHandle(shared);
    this.#kind = kind;
    this.#ending = ending;
  }

  get value(): string {
    return this.#value;
  }

  get signal(): AbortSignal {
    const { signal } = this.#lease;
    this.#signal ??= this.#ending ? AbortSignal.any([signal, this.#ending]) : signal;
    return this.#signal;
  }

  get held(): boolean {
    return this.#lease.held;
  }

  get lost(): LockLostError | null {
    this.#shared.expire();
    return this.#shared.loss;
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  get remaining(): number {
    return this.#lease.remaining;
  }

  async proclaim(value: string): Promise<void> {
    checkProclaimed(this.name, value);
    this.assertHeld();
    this.#value = value;
    const { hold, terms } = this.#shared;
    const is = await this.#kind.proclaim(hold, value, terms.lease).catch((error: unknown) => {
      throw unavailable(this.name, "what its leader proclaims was not confirmed", error, nounOf(this.#kind));
    });
    if (is === "stands") return;
    this.#shared.lose(is);
    // It has resigned meanwhile: nothing was lost.
    throw thrownAt(this.#shared.loss ?? released(this.name, nounOf(this.#kind)), this.proclaim);
  }

  resign(): Promise<void> {
    return this.#lease.leave();
  }

  /** What the leader does, in the stores of whatever follows this term. */
  lead<T>(body: (term: Term) => T, holds: FollowedHolds | null): T {
    const go = (): T => body(this);
    return holds ? holds.within(this.#shared, go) : go();
  }

  toJSON(): object {
    const { name, token, value, held } = this;
    return { name, token, value: short(visible(value)), held };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }
}

printAs(LeaderTerm, "Term");
