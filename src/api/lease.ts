/** What every lease has. A lock is given back with `unlock()`, permits with `release()`. */
export interface BaseLease {
  /** The name of the lock, or of the semaphore. */
  readonly name: string;
  /**
   * Aborts with a LockLostError as soon as the lock may no longer be held, or when the
   * `locks.scope()` ends in which this lease was taken; never on a normal unlock. Made on first
   * use. Its listeners run outside of every scope and of the caller's `AsyncLocalStorage` stores.
   *
   * Each read checks the clock, as `held` does: `lease.signal` is aborted on the first line after a
   * pause of the process that was longer than the lease. A signal that was taken out of the lease
   * before (`const { signal } = lease`) aborts at the next turn of the event loop, or when
   * `lease.signal` is read again.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts with a LockWantedError as soon as another caller waits for the lock: for long work that
   * can stop early and give the lock up. The lock stays held until it is given back. The first use
   * subscribes the client to its messages, and asks Redis whether a caller waits; if that fails,
   * the next renewal reports it. After a local hand-off while others wait, it is aborted from the
   * beginning.
   *
   * Callers of this and other processes count, even if they give up again; a `tryLock()` without a
   * time to wait does not. For `lock` and `fairLock` only: for other kinds it never aborts.
   *
   * @example
   * await locks.lock("reindex").withLock(async (lease) => {
   *   for (const batch of batches) {
   *     if (lease.wanted.aborted) break; // another caller waits: the rest is for another time
   *     await reindex(batch, { signal: lease.signal });
   *   }
   * });
   */
  readonly wanted: AbortSignal;
  /** Is the lock surely held at this moment? Computed from both clocks, without a round trip. */
  readonly held: boolean;
  /**
   * Call it before an irreversible write: it detects a deadline that passed before any timer could fire.
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
   * @throws LockLostError when it was lost, LockUnavailableError when Redis did not answer,
   *   LockError `LOCK_RELEASED` when it was given back before or meanwhile.
   * @example
   * await using lease = await lock.lock({ lease: 10_000 });
   * await lease.extend(60_000); // the rest takes longer
   */
  extend(ms: number): Promise<void>;
  /**
   * `await using`: gives it back, as `unlock()` of a lock and `release()` of permits do. A release
   * that Redis did not confirm is an `error` event: the block ran under the lock.
   *
   * @throws LockLostError when it was lost, unless `assertHeld()`, `extend()` or
   *   `signal.throwIfAborted()` has thrown that before. JavaScript puts it into a SuppressedError if
   *   the block throws too; `isLockLost` finds it there.
   */
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
   * Releases the lock, and hands it at once to the next waiter, if there is one. Calling it again
   * does nothing.
   *
   * @throws LockLostError, once, when the lease had been lost before, unless `assertHeld()`,
   *   `extend()` or `signal.throwIfAborted()` has thrown that; LockUnavailableError when Redis did
   *   not confirm (the release is tried again in the background until the lease is over). A late
   *   answer to the release is no loss. In `finally` it replaces an error of the body: `withLock` and
   *   `await using` keep both.
   * @example
   * const lease = await lock.lock();
   * await work({ signal: lease.signal });
   * await lease.unlock();
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
   * The fencing token: grows with every change of holder, from 1, below 2^53. Send it with every
   * write to the protected resource, which refuses a token smaller than one it has seen.
   */
  readonly token: number;
}
