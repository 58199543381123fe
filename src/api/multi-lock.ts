import type { UnfencedLease } from "./lease.ts";
import type { BodyOptions, LockOptions } from "./options.ts";

/** The body of a multi-lock's `withLock`. */
export type MultiLockBody<T> = (lease: MultiLease) => T | PromiseLike<T>;

/**
 * Several locks that are taken and given back together, all or none: what one `Lock` does, for all of them.
 *
 * They are always taken in the same order, whatever the order in which they were named, so that two
 * callers with overlapping multi-locks never wait for each other. All of them together have one
 * time to wait; while the last ones are waited for, the first ones are held and renewed. A lease
 * begins when all are held.
 *
 * Acquisitions reject as those of `Lock` do, with the name of the lock that was the cause, and with
 * LockError `LOCK_ORDER` inside a scope that holds one of the locks, when another one that it does
 * not hold comes before that in the order: waiting for it could be waiting for each other. With
 * `wait` 0 nobody waits, and it is tried.
 */
export interface MultiLock {
  /** The locks' names, each once, in the order in which they are taken. */
  readonly names: readonly string[];

  /**
   * Takes all the locks if it can within `wait` ms.
   *
   * @param wait ms to wait for all together; Infinity is allowed. Left out or 0: one attempt, never queued.
   * @param lease ms to hold, from when all are held. Left out: 30 000, renewed by the watchdog.
   * @returns the lease, or null, which only means that somebody else held one of the locks.
   * @example
   * await using lease = await locks.multiLock(["account:1", "account:2"]).tryLock(1_000, 30_000);
   * if (!lease) return "busy";
   */
  tryLock(wait?: number, lease?: number): Promise<MultiLease | null>;
  tryLock(options: LockOptions): Promise<MultiLease | null>;

  /**
   * Takes all the locks, waiting for ever or up to `options.wait` ms.
   *
   * @throws LockTimeoutError when somebody else held one of them at the end of `options.wait` ms.
   */
  lock(options?: LockOptions): Promise<MultiLease>;

  /**
   * The form to prefer: takes all, runs the body, releases all, and tells the truth about loss.
   * Inside the body each of the locks is borrowed, by nested `withLock` of the same multi-lock, of
   * a smaller one, or of a single lock.
   *
   * @returns what the body returned, when all were kept to the end; rejects with the body's error.
   * @throws LockTimeoutError when somebody else held one of them at the end of `options.wait` ms
   *   (default: Infinity); LockLostError when one was lost before the end, with the body's error,
   *   if any, as its `cause`; with `options.confirm` LockUnavailableError when the body is done and
   *   Redis did not say whether all were held so far.
   * @example
   * await locks.multiLock(["account:1", "account:2"]).withLock(async (lease) => {
   *   await withdraw(1, { signal: lease.signal, fence: lease.tokens.get("account:1")! });
   *   await deposit(2, { signal: lease.signal, fence: lease.tokens.get("account:2")! });
   * });
   */
  withLock<T>(body: MultiLockBody<T>): Promise<T>;
  withLock<T>(options: BodyOptions, body: MultiLockBody<T>): Promise<T>;

  /** Does the current scope hold all of them? Asks nobody. */
  isHeldHere(): boolean;

  /** Does anybody hold one of them? One command for each. @throws LockUnavailableError */
  isLocked(): Promise<boolean>;
}

/**
 * Several held locks with one end. As a lease, but with a token for each: one number cannot fence
 * several resources.
 *
 * * `held`, `assertHeld()`: all of them. `remaining`: of the one that ends first.
 * * `signal` aborts when any of them is lost; the reason names it in `lockName`. The others stay
 *   held until `unlock()`.
 * * `wanted` aborts when somebody waits for any of them; its reason names that one in `lockName`.
 * * `extend(ms)` extends all, `unlock()` releases all, also when one of them fails. One failure is
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
   * The fencing token of each by the lock's name, for the resource that this lock protects, in the
   * order of `names`. What has no tokens, a `spinLock` or a plain `redissonLock`, has no entry.
   *
   * @example
   * await using lease = await locks.multiLock(["account:1", "account:2"]).lock();
   * const fence = lease.tokens.get("account:1"); // undefined: no lock of this name, or one without tokens
   */
  readonly tokens: ReadonlyMap<string, number>;
}
