import type { Check } from "./check.ts";
import type { Election, ElectionOptions } from "./election.ts";
import type { LockEvents } from "./events.ts";
import type { UnfencedLease } from "./lease.ts";
import type { Listed, ListOptions } from "./list.ts";
import type { Lock } from "./lock.ts";
import type { MultiLock } from "./multi-lock.ts";
import type { OnceOptions, OnceResult, Turn } from "./once.ts";
import type {
  CheckOptions,
  CloseOptions,
  ForceUnlockOptions,
  LingerOptions,
  ReadWriteOptions,
} from "./options.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import type { ReentranceOptions } from "./reentrance.ts";
import type { Remembered, RememberedNow, RememberOptions, ResultRun } from "./remember.ts";
import type { Semaphore, SemaphoreOptions } from "./semaphore.ts";

/** What every lock client has: scopes, events, an end. */
export interface CommonClient {
  /** `host:pid:random`: how this client appears in Redis as a holder or a waiter. */
  readonly id: string;

  /**
   * Runs a function as one scope: inside it, `tryLock` and `lock` of a lock that the scope holds
   * re-enter it by count, even while another call of the scope still waits for that lock.
   * Leases that are still held when the scope ends are taken from their callers (LockLostError,
   * reason "scope") and reported as an `error` event; other users of the same hold keep it.
   *
   * @throws TypeError when `body` is no function.
   * @example
   * await locks.scope(async () => {
   *   await using outer = await lock.lock();
   *   await using inner = await lock.lock(); // the same token; no deadlock
   * });
   */
  scope<T>(body: () => T | PromiseLike<T>): Promise<T>;

  /**
   * Runs a function outside of every scope of this client, and returns its result. Work that it
   * starts is outside as well. Use it in a body or a scope to start work that is not part of it,
   * such as a loop that serves other callers' jobs. Other `AsyncLocalStorage` stores are not
   * affected.
   *
   * @throws TypeError when `body` is no function; what `body` throws.
   * @example
   * await lock.withLock(async () => {
   *   if (!isDraining) locks.outside(() => void drain(jobs)); // the jobs of others must not enter our lock
   * });
   */
  outside<T>(body: () => T): T;

  /**
   * Adds a listener; `LockEvents` lists the events. It runs outside of every scope and of all
   * callers' `AsyncLocalStorage` stores.
   *
   * @throws TypeError for an unknown event.
   * @example
   * locks.on("lost", ({ name, error }) => console.error(name, error.reason));
   */
  on<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this;

  /**
   * Adds a listener for the next event only.
   *
   * @throws TypeError as `on`.
   * @example
   * locks.once("wait", ({ name }) => console.log(`the first call that has to wait: ${name}`));
   */
  once<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this;

  /**
   * Removes a listener.
   *
   * @example
   * const onLost = ({ error }: { error: LockLostError }) => console.error(error.message);
   * locks.on("lost", onLost);
   * locks.off("lost", onLost);
   */
  off<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this;

  /**
   * For a readiness probe: is everything there that locks need? Checks each server (version,
   * eviction policy, clock, role, replicas), takes and releases a lock of its own, and publishes a
   * message that it must receive. Never rejects because of what it finds. It needs no further
   * rights than `lock`; what the user may not read is `unknown`.
   *
   * @param options.timeout ms for the whole check. Default: 2 000.
   * @param options.replicas how many replicas each server must have. Default: the client's `replicas`.
   * @throws TypeError or RangeError for bad options; ClientClosedError after `close()`.
   * @example
   * const { ok, problems } = await locks.check();
   * if (!ok) console.error(problems.join("\n"));
   */
  check(options?: CheckOptions): Promise<Check>;

  /**
   * Ends the client. From now on new acquisitions, and callers that wait, are rejected with
   * ClientClosedError. Holders get `grace` ms (default 5 000) to unlock; then their leases are lost
   * (reason "closed") and released, and an `error` event `LOCK_LEFT_BEHIND` names them (not with
   * `grace: 0`). It waits only for held leases and unanswered commands: without a connection, and
   * with nothing to release in Redis, it ends at once. Redis gets min(`grace`, `replyTimeout`) to
   * answer, once for everything. Only connections that this client opened are closed: quit your own
   * afterwards.
   *
   * @throws TypeError or RangeError for bad options.
   * @example
   * await locks.close({ grace: 10_000 });
   * await redis.quit();
   */
  close(options?: CloseOptions): Promise<void>;

  /** `await using`: the same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * What a client's callers wait for now, and what happened to the locks that it has cached
 * (`linger`) since it was created.
 */
export interface LockStats {
  /**
   * How many callers of this client wait now, for any lock, permit or election. To other processes
   * they are one waiting process for each lock.
   */
  readonly waiting: number;
  /** How many locks it caches now, with no caller inside. */
  readonly kept: number;
  /** How often a cached lock was taken again, without a command. */
  readonly takenAgain: number;
  /** How many cached locks another process wanted. */
  readonly recalled: number;
  /**
   * How many of these had not been taken again before: each cost the other process a round trip.
   */
  readonly recalledUnused: number;
  /** How many cached locks no process wanted while they stayed. */
  readonly lapsed: number;
}

/**
 * The locks of one process on one Redis. Made by `createLockClient`; use one per process; more are
 * fine. It is an interface, so tests of your application can implement a client of their own with
 * the methods that the application calls.
 *
 * @example
 * const locks = createLockClient(new Redis());
 * await locks.lock("order:42").withLock(async (lease) => charge(order, { fence: lease.token }));
 * await locks.close();
 */
export interface LockClient extends CommonClient {
  /**
   * The default lock: parked waiters, hand-off on unlock, local hand-offs. Apart from the readers
   * of a read-write lock, the only kind that can stay with its process when it is unlocked.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @param options.linger ms that it may stay with this process after an unlock through this
   *   object; 0: never.
   * @throws TypeError or RangeError for a bad name or bad options.
   * @example
   * const own = locks.lock("customer:42", { linger: 1_000 }); // this process serves customer 42
   */
  lock(name: string, options?: LingerOptions): Lock;

  /**
   * The same lock, first come first served over all processes (reconnects apart). Shares its keys
   * with `lock(name)`. It has no local hand-offs and is never cached, so its only option is `reentrant`.
   *
   * @throws TypeError or RangeError for a bad name; TypeError for other options.
   * @example
   * await locks.fairLock("checkout").withLock((lease) => charge(order, { fence: lease.token }));
   */
  fairLock(name: string, options?: ReentranceOptions): Lock;

  /**
   * At most N holders at a time, over all processes, each with its own lease. First come, first
   * served: by process, and inside a process by caller. It has its own keys: a lock of the same
   * name is independent.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @param options.permits how many there are, 1 to 1 000 000. All processes must give the same
   *   number, until `setPermits()` has set one. Left out: the number set by other processes.
   * @param options.fair, options.localHandoffs as for `readWriteLock`: the order of callers, and
   *   local hand-offs.
   * @throws TypeError or RangeError for a bad name or bad options.
   * @example
   * const slots = locks.semaphore("smtp", { permits: 10 });
   * await slots.withPermits((lease) => send(mail, { signal: lease.signal }));
   */
  semaphore(name: string, options?: SemaphoreOptions): Semaphore;

  /**
   * A lock that many readers hold at a time, or one writer. Independent of `lock(name)`.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @param options.fair true: callers are served one by one in the order in which they came, over
   *   all processes.
   * @param options.localHandoffs how many local hand-offs a writer's lock makes before it goes to
   *   the next process.
   * @throws TypeError or RangeError for a bad name or bad options.
   * @example
   * const config = locks.readWriteLock("config");
   * const value = await config.read.withLock(() => load());
   * await config.write.withLock((lease) => store(value, { fence: lease.token }));
   */
  readWriteLock(name: string, options?: ReadWriteOptions): ReadWriteLock;

  /**
   * Several locks as one: all or none, always taken in the same order, so that overlapping ones
   * never deadlock.
   *
   * @param members 1 to 100 names of `lock`, or locks of this client, such as
   *   `locks.fairLock(name)`. A name given twice counts once. Each member has its own options:
   *   `locks.lock(name, { reentrant: false })`.
   * @throws TypeError or RangeError for bad arguments, and for one name as two kinds of lock.
   * @example
   * await locks.multiLock(["account:1", "account:2"]).withLock(async (lease) => {
   *   await withdraw(1, { signal: lease.signal, fence: lease.tokens.get("account:1")! });
   *   await deposit(2, { signal: lease.signal, fence: lease.tokens.get("account:2")! });
   * });
   */
  multiLock(members: readonly (string | Lock<UnfencedLease>)[]): MultiLock;

  /**
   * Runs a function at most once per interval over all processes, by the clock of the Redis server:
   * for cron jobs that every process starts. It never waits: if another process runs it now, or it
   * ran in this interval, the answer comes at once. At most once if all goes well; after a crash
   * the body may run again within the interval (`onCrash`).
   *
   * @param name 1 to 512 bytes of UTF-8; any character. Independent of `lock(name)`.
   * @param options.every ms in which at most one run begins, from 10. It must be the same in all processes.
   * @param options.aligned true: by slots of the server's clock (UTC); false: counted from the last
   *   beginning. Default: false.
   * @param options.lease ms that the turn outlives a process that crashes; renewed while the body
   *   runs. Default: `leaseTime`.
   * @param options.onCrash "again": after a crash, or a body that throws, the turn is free when the
   *   lease is over; "keep": when the interval is. Default: "again".
   * @param options.signal cancels the request, not the body.
   * @param body is called with the turn; its `signal` aborts when the turn is lost.
   * @returns `{ ran: true, value }` with what the body returned;
   *   `{ ran: false, running, remaining }` where it did not run: `remaining` is the ms until the
   *   next run may begin, or that are left of the lease of the run under way.
   * @throws TypeError or RangeError for bad arguments; what the body throws; LockLostError when the
   *   turn was lost before the body ended (`cause`: what it threw); LockUnavailableError when Redis
   *   did not say for `replyTimeout` whether the body may run; LockFormatError;
   *   NotReplicatedError; ClientClosedError; `signal.reason`.
   * @example
   * const { ran } = await locks.runOnce("report", { every: 3_600_000, aligned: true }, async (turn) => {
   *   await sendReport({ signal: turn.signal });
   * });
   */
  runOnce<T>(
    name: string,
    options: OnceOptions,
    body: (turn: Turn) => T | PromiseLike<T>,
  ): Promise<OnceResult<T>>;

  /**
   * One caller of all processes runs the body, and the others get its value: callers that wait while it
   * runs, and callers that come within `keep` ms after its end. For idempotency keys, tokens that may be
   * refreshed once, and work that a thousand callers want at once. If the body throws, only its own
   * caller gets that, and the next waiter runs. After a crash, or a loss of the lock, a second body may
   * run: give its `token` or the name to whatever must not happen twice.
   *
   * @param name 1 to 512 bytes of UTF-8; any character. Independent of `lock(name)`. It names whose
   *   result it is: begin it with the account.
   * @param options.keep ms after the end of the run for which new callers get its result, from 0.
   * @param options.wait ms to wait while another caller runs. Default: Infinity.
   * @param options.fingerprint what the result is for: a call with another one is refused. Default: any.
   * @param options.lease ms that others wait after a crash; renewed while the body runs. Default:
   *   `leaseTime`.
   * @param options.signal cancels the wait, not the body.
   * @param options.label what the call is for, for people.
   * @param body is called with its run; what it returns is stored as JSON, at most 64 KiB, and
   *   `undefined` as such.
   * @returns the value, whether this call's own body has made it, the token of the run, and when it was
   *   stored. If Redis does not answer after the body, it resolves all the same, and an `error` event
   *   tells; the result is stored as soon as Redis answers, for up to 60 s.
   * @throws TypeError or RangeError for bad arguments; LockTimeoutError when another caller was still
   *   running after `wait`; FingerprintError; ResultError when the body has run and its value cannot be
   *   stored, and for all callers until `keep` ends; what the body throws; LockLostError when the run
   *   was lost before the body ended (`cause`: what it threw); LockUnavailableError when Redis did not
   *   answer, and the body did not run; LockFormatError; NotReplicatedError; ClientClosedError;
   *   `signal.reason`.
   * @example
   * const options = { keep: 86_400_000, wait: 0 }; // for a day; while another caller runs: LockTimeoutError
   * const { value, ran } = await locks.remember(`pay:${order.id}`, options, (run) =>
   *   charge(order, { signal: run.signal, fence: run.token }));
   * console.log(value.paid, ran ? "now" : "before");
   */
  remember<T>(
    name: string,
    options: RememberOptions,
    body: (run: ResultRun) => T | PromiseLike<T>,
  ): Promise<Remembered<T>>;

  /**
   * What new callers of `remember(name)` get now, by one command; null: nothing, so the next one runs.
   * It never waits.
   *
   * @throws TypeError or RangeError for a bad name; ResultError when a body has run whose value could
   *   not be stored; LockUnavailableError; ClientClosedError.
   * @example
   * const result = await locks.remembered<{ paid: number }>(`pay:${order.id}`);
   * if (result) console.log(result.value.paid, `for ${result.remaining} ms more`);
   */
  remembered<T = unknown>(name: string): Promise<RememberedNow<T> | null>;

  /**
   * Removes what new callers of `remember(name)` would get: the next one runs. A run under way is not
   * stopped, and its result will be remembered.
   *
   * @returns would new callers have got a result?
   * @throws TypeError or RangeError for a bad name; LockUnavailableError; ClientClosedError.
   * @example
   * const isThere = await locks.forget("price:42"); // it has changed: the next caller computes it
   */
  forget(name: string): Promise<boolean>;

  /**
   * For people: ends the run of `remember(name)` that is under way, and the first waiter runs. The old
   * runner's signal aborts (reason "revoked") at once if its client is subscribed, otherwise at its next
   * renewal (reason "taken" or "gone"). Its body works on until it notices: only its token keeps out its
   * writes. A result that it stores later counts until the newer run has stored its own.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the runner: `LockLostError.by`, and in its message.
   * @param options.holder ends only the run of this process: its `id`, as `list()` shows it.
   *   Default: any run.
   * @param options.token ends only the run with this token.
   * @returns false: there is no run, or another one, and nothing was done.
   * @throws TypeError or RangeError for a bad name or bad options; LockUnavailableError;
   *   ClientClosedError after `close()`.
   * @example
   * for await (const { name, holder } of locks.list({ match: "pay:*", kind: "remember" }))
   *   if (holder) await locks.stopRun(name, { holder: holder.id, label: "alice, ticket 4711" });
   */
  stopRun(name: string, options?: ForceUnlockOptions): Promise<boolean>;

  /**
   * One leader among the candidate processes, visible to all: the next candidate leads one message
   * after a resignation, and at most the lease and 1.9 s after a crash. Candidates lead in the
   * order in which they came. It shares nothing with a lock of the same name, and is never cached
   * (`linger`).
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @param options.lease ms that a term lasts unless it is renewed, from 100; `label` names this
   *   candidate. Default: the client's.
   * @throws TypeError or RangeError for a bad name or bad options.
   * @example
   * const election = locks.election("scheduler", { lease: 10_000 });
   * const options = { value: "10.0.0.7:8080", signal: stopping };
   * await election.runAsLeader(options, (term) => schedule({ fence: term.token }));
   */
  election(name: string, options?: ElectionOptions): Election;

  /**
   * The locks of all processes that are held or waited for, in no order: for people and tools, not
   * for code that locks. It scans Redis in steps of less than a millisecond, in Cluster each
   * primary in turn: about a second per 10 000 locks, plus the time to step over all other keys of
   * the database. A lock that changes meanwhile may be missed, or shown as it was. Not listed: the
   * turns of `runOnce`, spin locks (any text of Redis could be one), the votes of a quorum, and
   * locks held in another version's format. Ending the loop ends the listing.
   *
   * @param options.match a pattern for names, such as `order:*`; in it `*`, `?`, `[a-z]` and a
   *   backslash. Default: all names.
   * @param options.kind "lock", "readWrite", "semaphore", "election", "remember" (runs, without what
   *   they remember), "redisson", or several of them. Default: all but "redisson", for which every
   *   hash of the database is read.
   * @param options.signal ends the listing.
   * @throws TypeError or RangeError for bad options. The iterator rejects with LockUnavailableError
   *   when a server does not answer, ClientClosedError, or `signal.reason`.
   * @example
   * for await (const { name, holder, heldFor, waiters } of locks.list({ match: "order:*" }))
   *   console.log(name, holder?.host, holder?.pid, heldFor, waiters?.length);
   */
  list(options?: ListOptions): AsyncGenerator<Listed, void, undefined>;

  /**
   * How many callers of this client wait now, and what happened to the locks that it has cached
   * (`linger`). Needs no round trip.
   *
   * @example
   * const { takenAgain, recalledUnused } = locks.stats(); // is lingering worth it?
   */
  stats(): LockStats;
}
