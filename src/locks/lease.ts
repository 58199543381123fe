import { quote, released } from "../errors.ts";
import { unwatchHandle } from "../lease/forgotten.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { checkExtension } from "../options.ts";
import { printAs } from "../util/print.ts";
import { thrownAt } from "../util/stacks.ts";
import { type LeaseKeeper, type ScopedLease, ScopeTie } from "./scope-tie.ts";

/** What every lease has. How it is given back is its kind's: `unlock()` of a lock, `release()` of permits. */
export interface BaseLease {
  /** The name of the lock, or of the semaphore. */
  readonly name: string;
  /**
   * Aborts with a LockLostError as soon as the lock is not surely held any more, or the `locks.scope()` ends in which this lease
   * was taken; never on a normal unlock. Made on first use.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts as soon as somebody waits for the lock, with a LockWantedError: for long work that can stop early and give the lock
   * up. The lock stays held until it is given back. Made on first use: that subscribes the client to its messages, and asks Redis
   * whether somebody waits by now; where that fails, the next renewal says so. In a lock that is passed on while others wait it
   * is aborted from the beginning.
   *
   * Callers of other processes count and those of this one, also when they give up again; a `tryLock()` without a time to wait
   * does not. For `lock` and `fairLock`: of other kinds, whose waiters nobody sees, it never aborts.
   *
   * @example
   * await locks.lock("reindex").withLock(async (lease) => {
   *   for (const batch of batches) {
   *     if (lease.wanted.aborted) break; // somebody waits: the rest is for another time
   *     await reindex(batch, { signal: lease.signal });
   *   }
   * });
   */
  readonly wanted: AbortSignal;
  /** Is the lock surely held at this moment? Computed from both clocks, without asking Redis. */
  readonly held: boolean;
  /**
   * The line to put before an irreversible write: it knows of a deadline that passed before any timer could fire.
   *
   * @throws LockLostError when the lock is lost, LockError `LOCK_RELEASED` after it was given back.
   * @example
   * await lock.withLock(async (lease) => {
   *   await charge(order, { signal: lease.signal, fence: lease.token });
   *   lease.assertHeld();
   *   await send(mail);
   * });
   */
  assertHeld(): void;
  /** Whole ms until the lease ends unless it is renewed or extended; 0 when it is not held. */
  readonly remaining: number;
  /**
   * Makes the lease last at least `ms` from now; never shortens it.
   *
   * @param ms whole milliseconds, 10 to 2^31-1.
   * @throws LockLostError when it was lost, LockUnavailableError when Redis did not answer, LockError `LOCK_RELEASED` when it
   *   was given back before or meanwhile.
   * @example
   * await using lease = await lock.lock({ lease: 10_000 });
   * await lease.extend(60_000); // the rest takes longer
   */
  extend(ms: number): Promise<void>;
  /** `await using`: gives it back, as `unlock()` of a lock and `release()` of permits do. */
  [Symbol.asyncDispose](): Promise<void>;
  /** `using`: gives it back without waiting; a failure goes to the client's `error` event. */
  [Symbol.dispose](): void;
}

/**
 * A held lock without a fencing token: of a `spinLock` and of the plain `redissonLock`, which have none.
 *
 * @example
 * await using lease = await spinLock(locks, "orders").tryLock(1_000);
 * if (!lease) return "busy";
 * await charge(order, { signal: lease.signal });
 */
export interface UnfencedLease extends BaseLease {
  /**
   * Releases the lock; at once to the next waiter, if there is one. Calling it again does nothing.
   *
   * @throws LockLostError, once, when the lease had been lost before; LockUnavailableError when Redis did not confirm (the
   *   release is tried again in the background until the lease is over). A release that is answered late is no loss.
   * @example
   * const lease = await lock.lock();
   * try { await work({ signal: lease.signal }); } finally { await lease.unlock(); }
   */
  unlock(): Promise<void>;
}

/**
 * A held lock with an end. Release it with `unlock()`, or let `await using` do so.
 *
 * @example
 * await using lease = await lock.tryLock(1_000);
 * if (!lease) return "busy";
 * await charge(order, { signal: lease.signal, fence: lease.token });
 */
export interface Lease extends UnfencedLease {
  /**
   * The fencing token: grows with every change of holder, from 1, below 2^53. Send it along with every write to the protected
   * resource, which refuses a smaller one than it has seen.
   */
  readonly token: number;
}

/** One user's handle on a lease: a re-entered lock has several with the same token. */
export abstract class LeaseHandle implements BaseLease, ScopedLease {
  readonly name: string;
  readonly #shared: SharedLease;
  /** Null: of a body, or of a caller outside of every scope. */
  readonly #tie: ScopeTie | null;
  readonly #hasEntered: boolean;
  #hasLeft = false;

  /** `keeper`: the scope in which it is taken. `hasEntered`: of a user that has entered the lock; false: of one that borrows it. */
  constructor(shared: SharedLease, keeper: LeaseKeeper | null, hasEntered: boolean) {
    this.name = shared.name;
    this.#shared = shared;
    this.#tie = keeper && new ScopeTie(shared, keeper);
    this.#hasEntered = hasEntered;
    if (shared.handle === undefined) shared.handle = this;
    keeper?.keep(this);
  }

  /** What it is a handle on. @internal */
  static sharedOf(lease: LeaseHandle): SharedLease {
    return lease.#shared;
  }

  get signal(): AbortSignal {
    return this.#tie ? this.#tie.signal : this.#shared.signal;
  }

  get wanted(): AbortSignal {
    return this.#shared.owner.wanted(this.#shared);
  }

  get held(): boolean {
    return !this.#hasLeft && !this.#tie?.taken && this.#shared.held;
  }

  assertHeld(): void {
    const taken = this.#tie?.taken;
    if (!this.#hasLeft && !taken && this.#shared.expire()) return;
    throw thrownAt(taken ?? this.#shared.loss ?? released(this.name, this.#shared.noun), this.assertHeld);
  }

  get remaining(): number {
    return this.held ? Math.max(0, Math.floor(this.#shared.left())) : 0;
  }

  async extend(ms: number): Promise<void> {
    checkExtension(quote(this.name), ms, this.#shared.owner.kind.longestLease);
    this.assertHeld();
    const extended = this.#shared.extend(ms);
    // RACE: its scope may end meanwhile. What was extended then is nobody's, or another user's.
    await (this.#tie ? extended.finally(() => this.#assertNotTaken()) : extended);
  }

  /** Its user gives it back. @internal */
  leave(): Promise<void> {
    if (this.#hasLeft) return this.#shared.settled();
    this.#hasLeft = true;
    const tie = this.#tie;
    if (tie?.taken) return Promise.reject(thrownAt(tie.taken, this.leave));
    const left = this.#leaveShared(false);
    return tie ? tie.cut(this, left) : left;
  }

  /** The scope in which it was taken has ended. @internal */
  async take(): Promise<void> {
    if (!this.#hasLeft) await this.#tie?.take(this, (isTaken) => this.#leaveShared(isTaken));
  }

  /** The body in which it was taken has ended. @internal */
  outlive(taker: LeaseKeeper | null): void {
    if (this.held) this.#tie?.outlive(this, taker, this.#shared.handle === this);
  }

  #leaveShared(isTaken: boolean): Promise<void> {
    const shared = this.#shared;
    // The lock may stay with other users. A handle that its user has given back must not be watched from then on: it would
    // be collected, and told of as if nobody could unlock the lock.
    if (shared.handle === this) shared.handle = null;
    else unwatchHandle(this);
    return shared.leave(this.#hasEntered, isTaken);
  }

  #assertNotTaken(): void {
    if (this.#tie?.taken) throw thrownAt(this.#tie.taken, this.extend);
  }

  /** What messages call it. */
  get noun(): string {
    return this.#shared.noun;
  }

  /** What is printed. It asks for no signal, so none is made. */
  toJSON(): object {
    const { name, held, remaining } = this;
    return { name, held, remaining };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  [Symbol.dispose](): void {
    this.leave().catch((error: unknown) => this.#shared.owner.services.events.report(error));
  }
}

/** A handle on a lock. */
class LockHandle extends LeaseHandle implements UnfencedLease {
  unlock(): Promise<void> {
    return this.leave();
  }
}

/** A handle on a lock that has fencing tokens. */
class FencedHandle extends LockHandle implements Lease {
  get token(): number {
    return LeaseHandle.sharedOf(this).token;
  }

  override toJSON(): object {
    const { name, token, held, remaining } = this;
    return { name, token, held, remaining };
  }
}

/**
 * A handle on a lock, with a token if its kind has them: the types of locks say whether. `keeper`, `hasEntered`: as of `LeaseHandle`;
 * left out: of a caller outside of any scope.
 */
export const lockHandle = (
  shared: SharedLease,
  keeper: LeaseKeeper | null = null,
  hasEntered = true,
): LockHandle & Lease =>
  new (shared.token > 0 ? FencedHandle : LockHandle)(shared, keeper, hasEntered) as FencedHandle;

/** Is it a handle on a lock that has fencing tokens? */
export const isFenced = (lease: LeaseHandle): lease is FencedHandle => lease instanceof FencedHandle;

printAs(LockHandle, "Lease");
