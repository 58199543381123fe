import type { UnfencedLease } from "./lease.ts";
import type { BodyOptions, LockOptions } from "./options.ts";

/** The body of a multi-lock's `withLock`. */
export type MultiLockBody<T> = (lease: MultiLease) => T | PromiseLike<T>;

/**
 * Several locks that are taken and given back together, all or none, with the methods of a `Lock`.
 *
 * They are always taken in the same order, however they were named, so two callers with overlapping
 * multi-locks never wait for each other. `wait` counts for all of them together; while the call
 * waits for later ones, it holds and renews the earlier ones. A lease begins when all are held.
 *
 * Acquisitions reject as those of `Lock` do, with the name of the lock that was the cause. Inside a
 * scope that holds one of the locks they also reject with LockError `LOCK_ORDER` when another lock,
 * which the scope does not hold, comes earlier in the order: two such callers could wait for each
 * other. With `wait` 0 the call does not wait, so it is tried.
 */
export interface MultiLock {
  /** The locks' names, each once, in the order in which they are taken. */
  readonly names: readonly string[];

  /**
   * Takes all the locks if it can within `wait` ms.
   *
   * @param wait ms to wait for all together; Infinity is allowed. Left out or 0: one attempt, never queued.
   * @param lease ms to hold, from when all are held. Left out: 30 000, renewed by the watchdog.
   * @returns the lease, or null: Redis reported another holder of one of the locks, as for `tryLock` of
   *   a lock.
   * @example
   * await using lease = await locks.multiLock(["account:1", "account:2"]).tryLock(1_000, 30_000);
   * if (!lease) return "busy";
   */
  tryLock(wait?: number, lease?: number): Promise<MultiLease | null>;
  tryLock(options: LockOptions): Promise<MultiLease | null>;

  /**
   * Takes all the locks, waiting without limit or up to `options.wait` ms.
   *
   * @throws LockTimeoutError when another caller held one of them at the end of `options.wait` ms.
   */
  lock(options?: LockOptions): Promise<MultiLease>;

  /**
   * The form to prefer: takes all, runs the body, releases all, and reports a loss. Inside the body
   * each lock can be borrowed, by nested `withLock` of the same multi-lock, of a smaller one, or of
   * a single lock.
   *
   * @returns what the body returned, when all were kept to the end; rejects with the body's error.
   * @throws LockTimeoutError when another caller held one of them at the end of `options.wait` ms
   *   (default: Infinity); LockLostError when one was lost before the end, with the body's error,
   *   if any, as its `cause`; with `options.confirm` LockUnavailableError when the body is done and
   *   Redis did not confirm that all were held until then.
   * @example
   * await locks.multiLock(["account:1", "account:2"]).withLock(async (lease) => {
   *   await withdraw(1, { signal: lease.signal, fence: lease.tokens.get("account:1")! });
   *   await deposit(2, { signal: lease.signal, fence: lease.tokens.get("account:2")! });
   * });
   */
  withLock<T>(body: MultiLockBody<T>): Promise<T>;
  withLock<T>(options: BodyOptions, body: MultiLockBody<T>): Promise<T>;

  /** Does the current scope hold all of them? Local; no network call. */
  isHeldHere(): boolean;

  /** Is any of them held? One command for each. @throws LockUnavailableError */
  isLocked(): Promise<boolean>;
}

/**
 * Several held locks with one end. As a lease, but with a token for each: one number cannot fence
 * several resources.
 *
 * * `held`, `assertHeld()`: all of them. `remaining`: of the one that ends first.
 * * `signal` aborts when any of them is lost; the reason names it in `lockName`. The others stay
 *   held until `unlock()`.
 * * `wanted` aborts when another caller waits for any of them; its reason names that one in `lockName`.
 * * `extend(ms)` extends all, `unlock()` releases all, even if one of them fails. One failure is
 *   thrown as it is, several as an AggregateError, through which `isLockLost` looks.
 *
 * @example
 * await using lease = await locks.multiLock(["account:1", "account:2"]).lock();
 * await withdraw(1, { signal: lease.signal, fence: lease.tokens.get("account:1")! });
 * await deposit(2, { signal: lease.signal, fence: lease.tokens.get("account:2")! });
 */
export interface MultiLease extends Omit<UnfencedLease, "name"> {
  /** The locks' names, in the order in which they are taken. */
  readonly names: readonly string[];
  /**
   * The fencing token of each lock by its name, for the resource that the lock protects, in the
   * order of `names`. A `spinLock` or a plain `redissonLock` has no token, and no entry.
   *
   * @example
   * await using lease = await locks.multiLock(["account:1", "account:2"]).lock();
   * const fence = lease.tokens.get("account:1"); // undefined: no lock of this name, or one without tokens
   */
  readonly tokens: ReadonlyMap<string, number>;
}
