import type { BaseLease } from "./lease.ts";
import type { BodyOptions, ForceUnlockOptions, LockOptions, PassingOptions } from "./options.ts";
import type { HoldingParty, WaitingParty } from "./party.ts";

/** What permits are taken with: the options of a lock, but for re-entrance, which permits do not have. */
type PermitOptions = Omit<LockOptions, "reentrant">;
type PermitBodyOptions = Omit<BodyOptions, "reentrant">;

/**
 * Held permits of a semaphore. Release them with `release()`, or let `await using` do so. They have
 * no fencing token: others hold permits at the same time, so no number could tell a late write from
 * one in time.
 *
 * @example
 * await using lease = await slots.acquire(2, { wait: 5_000 });
 * await send(mail, { signal: lease.signal });
 */
export interface PermitLease extends BaseLease {
  /** How many permits it holds. */
  readonly units: number;
  /**
   * Gives all of its permits back; at once to the next waiter, if there is one. Calling it again
   * does nothing.
   *
   * @throws LockLostError, once, when the lease had been lost before; LockUnavailableError when
   *   Redis did not confirm (the release is tried again in the background until the lease is over).
   *   A release that is answered late is no loss.
   * @example
   * const lease = await slots.acquire();
   * try { await send(mail); } finally { await lease.release(); }
   */
  release(): Promise<void>;
}

/** The body of a `withPermits`. */
export type PermitBody<T> = (lease: PermitLease) => T | PromiseLike<T>;

/** What `semaphore.inspect()` shows. */
export interface SemaphoreInspection {
  /** How many permits there are. Null: nobody uses it now, and `setPermits()` has said no number. */
  readonly permits: number | null;
  /** Does the number of `setPermits()` count, and not that of anybody's code? */
  readonly isSet: boolean;
  /** How many are held; more than there are, for a while, when `setPermits()` has lowered the number. */
  readonly used: number;
  /** Holds in no order, at most 1 000; several callers of a process may share one. */
  readonly holders: readonly HoldingParty[];
  /**
   * Places in the queue, the next one first, at most 1 000: one for each process, with `fair: true`
   * for each caller.
   */
  readonly waiters: readonly WaitingParty[];
  /** When that was so, by the server's clock: ms since 1970. */
  readonly at: number;
  /**
   * The callers of this client that wait now, and for how many ms the first of them has; null: none
   * waits.
   */
  readonly here: { readonly waiting: number; readonly longest: number | null };
}

/**
 * At most so many at a time, over all processes: a semaphore by name. Cheap and stateless, as a
 * lock is. First come, first served: nobody overtakes, so one that wants many is not starved by
 * those that want few. The order is that of processes, each of which has one place in the queue,
 * and inside a process that of its callers: they pass permits on for a moment, 25 ms at the most.
 * With `fair: true` it is that of callers over all processes.
 *
 * A semaphore is not re-entered: two acquisitions in one scope are two. It counts what is in use at
 * one time; it is no rate limiter, because permits come back with `lease.release()` and not with
 * time.
 *
 * Every acquisition rejects with a TypeError or RangeError for bad arguments, before anything is
 * sent; with PermitsError when there are fewer permits than it wants, another number than its code
 * says, or no number; with LockError `TOO_MANY_HOLDS` when there are 10 000 holders; with
 * LockUnavailableError when Redis does not answer; with ClientClosedError after `close()`; and with
 * `signal.reason` when `options.signal` aborts.
 */
export interface Semaphore {
  readonly name: string;

  /**
   * Takes so many permits if it can within `wait` ms.
   *
   * @param units how many, from 1 to the number of permits. Default: 1.
   * @param wait ms to wait; Infinity is allowed. Left out or 0: one attempt, never queued.
   * @param lease ms to hold. Left out: 30 000, renewed by the watchdog. Given: it ends after this time.
   * @returns the lease, or null: too few were free all the time, or others waited for them before.
   * @example
   * await using lease = await slots.tryAcquire();
   * if (!lease) return "busy";
   */
  tryAcquire(units?: number, wait?: number, lease?: number): Promise<PermitLease | null>;
  tryAcquire(units: number, options: PermitOptions): Promise<PermitLease | null>;
  tryAcquire(options: PermitOptions): Promise<PermitLease | null>;

  /**
   * Takes so many permits, waiting for ever or up to `options.wait` ms.
   *
   * @param units how many, from 1 to the number of permits. Default: 1.
   * @throws LockTimeoutError when too few were free for `options.wait` ms.
   * @example
   * await using lease = await slots.acquire(2, { wait: 5_000 });
   */
  acquire(units?: number, options?: PermitOptions): Promise<PermitLease>;
  acquire(options: PermitOptions): Promise<PermitLease>;

  /**
   * The form to prefer: takes permits (default: 1), runs the body, gives them back, and tells the
   * truth about loss.
   *
   * @returns what the body returned, when the permits were kept to the end; rejects with the body's error.
   * @throws LockTimeoutError when too few were free for `options.wait` ms (default: Infinity);
   *   LockLostError when they were lost before the end, with the body's error, if any, as its
   *   `cause`; with `options.confirm` LockUnavailableError when the body is done and Redis did not
   *   say whether they were held so far.
   * @example
   * await slots.withPermits(2, { wait: 5_000 }, async (lease) => send(mail, { signal: lease.signal }));
   */
  withPermits<T>(body: PermitBody<T>): Promise<T>;
  withPermits<T>(options: PermitBodyOptions, body: PermitBody<T>): Promise<T>;
  withPermits<T>(units: number, body: PermitBody<T>): Promise<T>;
  withPermits<T>(units: number, options: PermitBodyOptions, body: PermitBody<T>): Promise<T>;

  /**
   * From now on there are so many permits, for all callers of all processes, whatever their code
   * says, until it is called again. Fewer than are in use take none away: nobody gets any before
   * enough have come back. A caller that waits for more than there are now is refused at its next
   * look. Of two calls at the same time the later one counts.
   *
   * @param permits 1 to 1 000 000.
   * @throws TypeError or RangeError for a bad number; LockUnavailableError.
   * @example
   * await locks.semaphore("smtp").setPermits(20);
   */
  setPermits(permits: number): Promise<void>;

  /**
   * How many permits there are, and which callers hold and want them. One command. @throws
   * LockUnavailableError
   */
  inspect(): Promise<SemaphoreInspection>;

  /**
   * For people: takes all permits away from their holders, and gives them to those that wait.
   * Signals of holders abort (reason "revoked") where these are subscribed; else they learn of it
   * at the next renewal or unlock.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the holders: `LockLostError.by`.
   * @param options.holder ends only this one: the `id` of a holder, as `inspect()` and `list()` show it.
   * @returns how many holds there were: callers of a process may share one.
   * @throws TypeError or RangeError for bad options; LockUnavailableError.
   */
  forceUnlock(options?: ForceUnlockOptions): Promise<number>;
}

/** How `locks.semaphore` makes one. */
export interface SemaphoreOptions extends PassingOptions {
  /**
   * How many permits there are, 1 to 1 000 000. All processes must say the same, until
   * `setPermits()` has said a number, which counts for all from then on. Default: what others have
   * said; where nobody has, callers are refused (`PERMITS_UNKNOWN`).
   */
  permits?: number | undefined;
  /**
   * true: callers are served one by one in the order in which they came, over all processes. Then
   * callers of a process share nothing, and each costs two commands. Default: false: the order is
   * that of processes, each of which has one place in the queue, and inside a process that of its
   * callers.
   */
  fair?: boolean | undefined;
}
