import type { BaseLease } from "./lease.ts";
import type { BodyOptions, ForceUnlockOptions, LockOptions, PassingOptions } from "./options.ts";
import type { HoldingParty, WaitingParty } from "./party.ts";

/** The options for permits: those of a lock without re-entrance, which permits do not have. */
type PermitOptions = Omit<LockOptions, "reentrant">;
type PermitBodyOptions = Omit<BodyOptions, "reentrant">;

/**
 * Held permits of a semaphore. Release them with `release()`, or let `await using` do so. They have
 * no fencing token: others hold permits at the same time, so no number could distinguish a late
 * write from one in time.
 *
 * @example
 * await using lease = await slots.acquire(2, { wait: 5_000 });
 * await send(mail, { signal: lease.signal });
 */
export interface PermitLease extends BaseLease {
  /** How many permits it holds. */
  readonly units: number;
  /**
   * Gives all of its permits back, at once to the next waiter, if there is one. Calling it again
   * does nothing.
   *
   * @throws LockLostError, once, when the lease had been lost before; LockUnavailableError when
   *   Redis did not confirm (the release is tried again in the background until the lease is over).
   *   A late answer to the release is no loss.
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
  /**
   * How many permits there are. Null: no process uses it now, and `setPermits()` has set no number.
   */
  readonly permits: number | null;
  /** Does the number of `setPermits()` count, instead of the callers' code? */
  readonly isSet: boolean;
  /**
   * How many are held; for a while more than there are, after `setPermits()` has lowered the
   * number.
   */
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
   * The callers of this client that wait now, and how many ms the first of them has waited; null:
   * none waits.
   */
  readonly here: { readonly waiting: number; readonly longest: number | null };
}

/**
 * At most N permits in use at a time, over all processes: a semaphore by name. Cheap and stateless,
 * as a lock is. First come, first served: no caller overtakes, so one that wants many permits is
 * not starved by callers that want few. Processes are served in order, each with one place in the
 * queue, and callers in order inside their process: they hand permits on locally for at most 25 ms.
 * With `fair: true` callers are served in order over all processes.
 *
 * A semaphore is not re-entered: two acquisitions in one scope are two. It limits how many are in
 * use at one time; it is no rate limiter, because permits come back with `lease.release()` and not
 * with time.
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
   * Takes `units` permits if it can within `wait` ms.
   *
   * @param units how many, from 1 to the number of permits. Default: 1.
   * @param wait ms to wait; Infinity is allowed. Left out or 0: one attempt, never queued.
   * @param lease ms to hold. Left out: 30 000, renewed by the watchdog. Given: it ends after this time.
   * @returns the lease, or null: too few were free all the time, or earlier callers waited for them.
   * @example
   * await using lease = await slots.tryAcquire();
   * if (!lease) return "busy";
   */
  tryAcquire(units?: number, wait?: number, lease?: number): Promise<PermitLease | null>;
  tryAcquire(units: number, options: PermitOptions): Promise<PermitLease | null>;
  tryAcquire(options: PermitOptions): Promise<PermitLease | null>;

  /**
   * Takes `units` permits, waiting without limit or up to `options.wait` ms.
   *
   * @param units how many, from 1 to the number of permits. Default: 1.
   * @throws LockTimeoutError when too few were free for `options.wait` ms.
   * @example
   * await using lease = await slots.acquire(2, { wait: 5_000 });
   */
  acquire(units?: number, options?: PermitOptions): Promise<PermitLease>;
  acquire(options: PermitOptions): Promise<PermitLease>;

  /**
   * The form to prefer: takes permits (default: 1), runs the body, gives them back, and reports a loss.
   *
   * @returns what the body returned, when the permits were kept to the end; rejects with the body's error.
   * @throws LockTimeoutError when too few were free for `options.wait` ms (default: Infinity);
   *   LockLostError when they were lost before the end, with the body's error, if any, as its
   *   `cause`; with `options.confirm` LockUnavailableError when the body is done and Redis did not
   *   confirm that they were held until then.
   * @example
   * await slots.withPermits(2, { wait: 5_000 }, async (lease) => send(mail, { signal: lease.signal }));
   */
  withPermits<T>(body: PermitBody<T>): Promise<T>;
  withPermits<T>(options: PermitBodyOptions, body: PermitBody<T>): Promise<T>;
  withPermits<T>(units: number, body: PermitBody<T>): Promise<T>;
  withPermits<T>(units: number, options: PermitBodyOptions, body: PermitBody<T>): Promise<T>;

  /**
   * Sets the number of permits for all callers of all processes, whatever their code says, until
   * the next call. A number below those in use takes none away: callers get more only when enough
   * have come back. A caller that waits for more than there are now is refused at its next
   * re-check. Of two concurrent calls the later one counts.
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
   * A holder's signal aborts (reason "revoked") if it is subscribed; otherwise it learns of the
   * loss at its next renewal or unlock.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the holders: `LockLostError.by`.
   * @param options.holder ends only this holder: its `id`, as `inspect()` and `list()` show it.
   * @returns how many holds were ended: callers of a process may share one.
   * @throws TypeError or RangeError for bad options; LockUnavailableError.
   */
  forceUnlock(options?: ForceUnlockOptions): Promise<number>;
}

/** The options of `locks.semaphore`. */
export interface SemaphoreOptions extends PassingOptions {
  /**
   * How many permits there are, 1 to 1 000 000. All processes must give the same number, until
   * `setPermits()` has set one, which counts for all from then on; a client whose code gives
   * another one emits one `error` event (`SETTING_DIFFERS`). Default: the number set by other
   * processes; if there is none, callers are refused (`PERMITS_UNKNOWN`).
   */
  permits?: number | undefined;
  /**
   * true: callers are served one by one in the order in which they came, over all processes. Then
   * callers of a process share nothing, and each costs two commands. Default: false: processes are
   * served in order, each with one place in the queue, and callers in order inside their process.
   */
  fair?: boolean | undefined;
}
