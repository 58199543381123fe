import type { Lease, UnfencedLease } from "./lease.ts";
import type { BodyOptions, ForceUnlockOptions, LockOptions, RecallOptions } from "./options.ts";
import type { HoldingParty, WaitingParty } from "./party.ts";

/** What `inspect()` shows. */
export interface Inspection extends Inspected {
  /**
   * The callers of this client that wait for the lock now, and how many ms the first of them has
   * waited; null: none waits. All of them are one waiting process in `waiters`, or one place each
   * if the lock is fair.
   */
  readonly here: { readonly waiting: number; readonly longest: number | null };
}

/** The body of a `withLock`. */
export type LockBody<T, L extends UnfencedLease = Lease> = (lease: L) => T | PromiseLike<T>;

/**
 * A lock by name. Cheap and stateless: create it per request, or share it; the lease is what holds
 * the lock. A `Lock` gives leases with a fencing token; a `Lock<UnfencedLease>`, a `spinLock` or a
 * plain `redissonLock`, gives leases without one.
 *
 * Every acquisition rejects with a TypeError or RangeError for bad arguments, before anything is
 * sent; with LockUnavailableError when Redis does not answer; with NotReplicatedError when too few
 * replicas have it; with LockFormatError when another version of this package holds it; with
 * DeadlockError if the client rejects deadlocks; with ClientClosedError after `close()`; with
 * `signal.reason` when `options.signal` aborts; with LockError `TOO_MANY_HOLDS` when too many
 * callers hold or want it; and inside a scope with LockLostError when the scope's own lease was
 * lost, and LockError `LOCK_UPGRADE` when a reader wants to write.
 */
export interface Lock<L extends UnfencedLease = Lease> {
  readonly name: string;

  /**
   * Takes the lock if it can within `wait` ms.
   *
   * @param wait ms to wait; Infinity is allowed. Left out or 0: one attempt, never queued.
   * @param lease ms to hold. Left out: 30 000, renewed by the watchdog. Given: it ends after this time.
   * @returns the lease, or null: Redis reported another holder all the time. That is a caller that
   *   has the lock, or, with `linger`, a process that has cached it and did not answer: without
   *   `wait` it has 50 ms.
   * @example
   * await using lease = await lock.tryLock(1_000, 30_000);
   * if (!lease) return "busy";
   */
  tryLock(wait?: number, lease?: number): Promise<L | null>;
  tryLock(options: LockOptions): Promise<L | null>;

  /**
   * Takes the lock, waiting without limit or up to `options.wait` ms.
   *
   * @throws LockTimeoutError when another caller held the lock for `options.wait` ms.
   * @example
   * const lease = await lock.lock({ wait: 5_000 });
   * try { await work(); } finally { await lease.unlock(); }
   */
  lock(options?: LockOptions): Promise<L>;

  /**
   * The form to prefer: takes the lock, runs the body, releases, and reports a loss. Inside the
   * body the lock is borrowed: a nested `withLock` of the same name needs no command, one at a
   * time. A call that entered the lock in the body, by `lock()` or `tryLock()`, keeps it until its
   * own `unlock()`, on the terms of this call, even after the body.
   *
   * @returns what the body returned, when the lock was kept to the end; rejects with the body's error.
   * @throws LockTimeoutError when another caller held the lock for `options.wait` ms (default:
   *   Infinity); LockLostError when the lock was lost before the end, with the body's error, if
   *   any, as its `cause`; with `options.confirm` LockUnavailableError when the body is done and
   *   Redis did not confirm that the lock was held until then.
   * @example
   * await lock.withLock({ wait: 1_000 }, async (lease) => {
   *   if (await isPaid(order)) return; // callers take turns: the one before may have done it
   *   await charge(order, { signal: lease.signal });
   * });
   */
  withLock<T>(body: LockBody<T, L>): Promise<T>;
  withLock<T>(options: BodyOptions, body: LockBody<T, L>): Promise<T>;

  /**
   * Does the current scope hold this lock? Local; no network call.
   *
   * @example
   * const save = () => { if (!lock.isHeldHere()) throw new Error("save() needs the lock"); };
   * await lock.withLock(() => save());
   */
  isHeldHere(): boolean;

  /**
   * Does a caller use the lock? One command; one more if a client with `linger` may cache it: that
   * client is asked, has 50 ms to answer, and counts as using it otherwise. For the two locks of a
   * `readWriteLock`: by this one; `write.isLocked()` is false while others read.
   *
   * @throws LockUnavailableError
   * @example
   * if (await lock.isLocked()) return "another process works on it"; // and may have ended by now
   */
  isLocked(): Promise<boolean>;

  /**
   * Asks the client that caches the lock (`linger`) to release it, without taking it. Concurrent
   * calls share one question.
   *
   * @param options.wait ms for the holder's answer, default 1 000.
   * @returns "free": no process held it; of `read` and `write`, by this one of the two. "released":
   *   its client had cached it, and has released it. "busy": a caller uses it; for kinds other than
   *   `lock`, `fairLock` and readers' shared holds: a process holds it. "silent": the client that
   *   caches it did not answer in time.
   * @throws TypeError or RangeError for a bad wait; LockUnavailableError.
   * @example
   * if ((await locks.lock("report").recall({ wait: 200 })) === "busy") return "a worker is at it";
   */
  recall(options?: RecallOptions): Promise<Recalled>;

  /**
   * The holder, until when and with which token; for `lock` and `fairLock` the waiting processes in
   * the order of their places (a client of `lock` has one place for all its callers, a client of
   * `fairLock` one for each); how many callers of this client wait; and whether the holder may have
   * it cached (`kept`). One command.
   *
   * @throws LockUnavailableError
   * @example
   * const { holder, waiters } = await lock.inspect();
   * console.log(holder?.label, holder?.host, holder?.pid, waiters?.length);
   */
  inspect(): Promise<Inspection>;

  /**
   * For people: takes the lock away from its holder and hands it to the next waiter. The holder's
   * signal aborts (reason "revoked") if it is subscribed; otherwise it learns of the loss at its
   * next renewal or unlock. A client that may have the lock cached is first asked to release it,
   * for 50 ms.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the holder: `LockLostError.by`, and in its
   *   message. `lock`, `fairLock` and `readWriteLock` have a message that carries it; for other
   *   kinds it is checked but not sent.
   * @param options.holder ends only this holder: its `id`, as `inspect()` and `list()` show it.
   * @param options.token ends only the hold with this token. TypeError for kinds without tokens.
   * @returns whether it was held; with `token` or `holder`, whether that holder held it.
   * @throws TypeError or RangeError for bad options; LockUnavailableError.
   * @example
   * await locks.lock("order:42").forceUnlock({ label: "alice, ticket 4711" });
   */
  forceUnlock(options?: ForceUnlockOptions): Promise<boolean>;
}

/**
 * The outcome of asking a lock's holder to release it. "free": no process held it. "released": its
 * holder had cached it, and has released it. "busy": a caller used it. "silent": its holder did not
 * answer in time.
 */
export type Recalled = "free" | "released" | "busy" | "silent";

/** What Redis stores about a lock. */
export interface Inspected {
  /** Null: the lock is free. */
  readonly holder: HoldingParty | null;
  /** The holder's fencing token. Null: the lock is free, or its kind has none. */
  readonly token: number | null;
  /**
   * ms until the hold ends in Redis unless it is renewed. Null: the lock is free. Infinity: its key
   * has no TTL.
   */
  readonly remaining: number | null;
  /**
   * Is it held by a client that may cache it, with no caller inside, until another process wants
   * it?
   */
  readonly kept: boolean;
  /**
   * Waiting processes, the next one first; at most 1 000. Null: Redis keeps no queue for this kind.
   */
  readonly waiters: readonly WaitingParty[] | null;
  /** When that was so, by the server's clock: ms since 1970. Null: this kind does not record it. */
  readonly at: number | null;
}
