import {
  CHECK_TIMEOUT,
  GRACE,
  GRANT_WINDOW,
  LEASE_MIN,
  LEASE_TIME,
  PASSES_MAX,
  REPLICA_TIMEOUT,
  REPLY_TIMEOUT,
  STAY_WINDOW,
} from "../defaults.ts";
import { LABEL } from "./label.ts";
import { REENTRANCE, type ReentranceOptions } from "./reentrance.ts";
import {
  anything,
  type Checked,
  checkOptions,
  checkValue,
  count,
  flag,
  orInfinity,
  PREFIX,
  type Rule,
  refuse,
  time,
} from "./validate.ts";

/** How one acquisition waits and holds. Times are whole milliseconds. */
export interface LockOptions {
  /**
   * How long to wait for the lock; Infinity is allowed. Default: 0 for `tryLock`, Infinity for
   * `lock` and `withLock`.
   */
  wait?: number | undefined;
  /**
   * How long the lease lasts, from 10. Left out: the client's `leaseTime` (30 000), renewed by the
   * watchdog while it is held. Given: it ends after this time even if the process lives, unless
   * `watchdog` is true.
   */
  lease?: number | undefined;
  /** Renew the lease every third of its time while it is held. Default: true when `lease` is left out. */
  watchdog?: boolean | undefined;
  /** The lease is lost after this time even with the watchdog. Default: no limit. */
  maxHold?: number | undefined;
  /** Cancels only the wait: the call rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
  /**
   * What the call is for, 1 to 64 bytes of UTF-8: shown by `inspect()` while the caller waits or
   * holds the lock, and by the LockTimeoutError of others. It is stored in Redis, so no secrets. A
   * caller that gets the lock by a local hand-off, or shares it with other readers, is shown with
   * the label of the caller that asked Redis. Not shown for `redissonLock`, `redissonFencedLock`,
   * `spinLock` and the quorum's locks. Default: none, and the client's is shown.
   */
  label?: string | undefined;
  /**
   * false: the call neither re-enters a hold of its scope nor joins a waiting call of its scope for
   * the same lock: it waits as any other caller does. And no call of its scope enters the hold that
   * it gets. Default: the lock's.
   *
   * @example
   * const job = () => lock.withLock({ reentrant: false }, () => charge(order));
   * await job(); // waits, whatever scope runs it
   */
  reentrant?: boolean | undefined;
}

/** How one `withLock` waits, holds and ends. */
export interface BodyOptions extends LockOptions {
  /**
   * true: asks Redis at the end whether the lock was held until then, even where an `unlock()`
   * would not. With local hand-offs, or a cached lock (`linger`), a loss may otherwise be detected
   * only later. Then the call also rejects with LockUnavailableError when Redis did not answer.
   * Costs a command where none would be sent. Default: false.
   */
  confirm?: boolean | undefined;
}

/** How a client works. Times are whole milliseconds. */
export interface LockClientOptions {
  /**
   * The name of this process or its role for people, 1 to 64 bytes of UTF-8: the client's `id`
   * begins with it, so it is shown with every hold in Redis, and in the names of channels; no
   * secrets. Default: none.
   */
  label?: string | undefined;
  /**
   * Comes before every key and channel of the client, 1 to 512 bytes of UTF-8, as ioredis's
   * `keyPrefix` does; if the connection has one too, that comes first. Clients whose prefixes differ
   * share no lock. `redissonFencedLock` refuses it. Default: none.
   *
   * @example
   * // for a Redis user with ~tenant1:* &tenant1:*
   * const locks = createLockClient(redis, { prefix: "tenant1:" });
   */
  prefix?: string | undefined;
  /** The lease when a call names none. Default: 30 000. */
  leaseTime?: number | undefined;
  /**
   * How long a command may stay unanswered before its outcome counts as unknown. Default: 5 000.
   * The first command of a call with a shorter wait gets that wait, but at least 500.
   */
  replyTimeout?: number | undefined;
  /**
   * The TTL of a lock that was handed over by message until its new holder is known to be awake;
   * Infinity: always the full lease. Default: 3 000. A stopped process or a lost host at the head
   * of the queue delays the others this long.
   */
  grantWindow?: number | undefined;
  /**
   * How many local hand-offs this process makes before a lock goes to the next process; 0: none.
   * Given here it counts for `lock`, `readWriteLock`, `semaphore`, `redissonLock` and `spinLock`.
   * Default: 16; 48 for a `lock` with `linger`, whose callers want the rate; 0 for `redissonLock`,
   * because Java would wait longer.
   */
  localHandoffs?: number | undefined;
  /**
   * How long an unlocked `lock`, or a readers' hold of a `readWriteLock`, may stay cached in this
   * process if no caller waits, to be taken again without a round trip; 0 to half of `grantWindow`,
   * at most 1 500. When another process wants it, this one is notified and hands it over. If this
   * process has died, or its event loop is blocked, others wait up to 3 s for an unused lock; and
   * `unlock()` proves nothing. Locks that processes want in turn are not cached. 0 with `replicas`.
   * Default: 0, never.
   */
  linger?: number | undefined;
  /**
   * How many replicas must have acknowledged a lock before its caller gets it; with fewer it is
   * given back, and the call rejects with NotReplicatedError. Each acquisition from Redis costs two
   * more round trips, on a separate connection. It makes it less likely that a failover loses the
   * lock, not impossible. Default: 0, which costs nothing.
   */
  replicas?: number | undefined;
  /** How long the replicas may take, in ms. Default: 1 000. */
  replicaTimeout?: number | undefined;
  /**
   * "shared": commands use the given connection, which must not be blocked (BLPOP, MULTI without
   * pipeline, SUBSCRIBE). "own": they use a duplicate of it. Default: "shared".
   */
  connection?: "shared" | "own" | undefined;
  /**
   * false: a call does not re-enter what its scope holds; it waits, as any other caller does. For
   * applications in which work of one caller can run in the asynchronous context of another one.
   * `reentrant` of a lock, or of a call, overrides it. Permits of a semaphore are never re-entered.
   * Default: true.
   *
   * @example
   * // every nested call waits: pass the lease on instead
   * const locks = createLockClient(redis, { reentrant: false });
   */
  reentrant?: boolean | undefined;
  /**
   * What happens after 5 s of a deadlock: callers wait in a circle, each in a scope that holds what
   * another wants. "reject" rejects the last one with DeadlockError; "warn" emits an event
   * `deadlock` and a process warning; "off" does not check. Default: "warn".
   */
  deadlocks?: "reject" | "warn" | "off" | undefined;
}

/** How a lock is handed on. */
export interface PassingOptions {
  /**
   * How many local hand-offs this process makes before this lock goes to the next process, 0 to 1
   * 000; 0: none. If the caller that took the lock from Redis and the next caller give different
   * numbers, the smaller one counts. Default: the client's `localHandoffs`, which explains it.
   */
  localHandoffs?: number | undefined;
}

/** How a lock is handed on, cached and entered. */
export interface LingerOptions extends PassingOptions, ReentranceOptions {
  /**
   * How long this lock may stay with this process after an unlock through this object; 0: never.
   * For a read-write lock it concerns the readers, without `fair`. Default: the client's `linger`,
   * which explains it.
   */
  linger?: number | undefined;
}

/** How a read-write lock is handed on. */
export interface ReadWriteOptions extends LingerOptions {
  /**
   * true: callers are served one by one in the order in which they came, over all processes. Then
   * readers of a process share nothing, and each costs two commands. Default: false: processes are
   * served in order, each with one place for its readers and one for its writers.
   */
  fair?: boolean | undefined;
}

/** How `close` treats unfinished work. */
export interface CloseOptions {
  /** How long holders may finish before their leases are taken, in ms. Default: 5 000. */
  grace?: number | undefined;
}

/** How `check` works. Times are whole milliseconds. */
export interface CheckOptions {
  /** How long the whole check may take. Default: 2 000. */
  timeout?: number | undefined;
  /** How many replicas each server must have. Default: the client's `replicas`. */
  replicas?: number | undefined;
}

/** How `forceUnlock` takes a lock away. */
export interface ForceUnlockOptions {
  /**
   * The name of the person or program that force-releases, shown to the holder of a `lock`,
   * `fairLock`, read-write lock or semaphore. 1 to 64 bytes of UTF-8. Default: none.
   */
  label?: string | undefined;
  /**
   * Ends only this holder: its `id`, as `inspect()` and `list()` have shown it; if that hold has
   * ended, nothing is done. A hold belongs to a process: callers that got it there by a local
   * hand-off, or share it, lose it too. Default: any holder; of a semaphore all.
   */
  holder?: string | undefined;
  /**
   * Ends only the hold with this token, as `inspect()` has shown it. Readers with no writer between
   * them have one token, and end together. Not for a `redissonFencedLock` that is also used as a
   * plain one. TypeError for `redissonLock`, `spinLock` and semaphores, which have none.
   */
  token?: number | undefined;
}

/** How `recall` recalls. */
export interface RecallOptions {
  /** How long the client that caches the lock may take to answer, in ms. Default: 1 000. */
  wait?: number | undefined;
}

/** The rules of a client's options. */
export const CLIENT = {
  leaseTime: time(LEASE_MIN, LEASE_TIME),
  replyTimeout: time(LEASE_MIN, REPLY_TIMEOUT),
  grantWindow: orInfinity(time(LEASE_MIN, GRANT_WINDOW)),
  localHandoffs: count(PASSES_MAX, undefined),
  linger: anything as Rule<number>, // up to half of the grant window
  replicas: count(100, 0),
  replicaTimeout: time(LEASE_MIN, REPLICA_TIMEOUT),
  connection: {
    wanted: '"shared" or "own"',
    fits: (value) => value === "shared" || value === "own",
    fallback: "shared",
  } as Rule<"shared" | "own">,
  reentrant: flag(true),
  deadlocks: {
    wanted: '"reject", "warn" or "off"',
    fits: (value) => value === "reject" || value === "warn" || value === "off",
    fallback: "warn",
  } as Rule<"reject" | "warn" | "off">,
  label: LABEL,
  prefix: PREFIX,
};

/**
 * A client's options, checked and complete. `localHandoffs` undefined: each kind has its own
 * number.
 */
export type Settings = Checked<typeof CLIENT>;

/** The start of messages about a client that is not created. */
export const CREATE = "Cannot create a lock client";

/** @throws TypeError, RangeError */
export function checkClientOptions(options: unknown): Settings {
  const { grantWindow } = checkOptions(CREATE, CLIENT, options);
  const settings = checkOptions(CREATE, { ...CLIENT, linger: lingerUpTo(grantWindow) }, options);
  if (settings.replicas > 0) checkValue(CREATE, "linger", settings.linger, NOT_WITH_REPLICAS);
  return settings;
}

/** When a process takes a cached lock again, half of the window must be left. */
function lingerUpTo(grantWindow: number): Rule<number> {
  const most = Math.floor(Math.min(grantWindow, STAY_WINDOW) / 2);
  return time(0, 0, most, `${most} (half of grantWindow, of which ${STAY_WINDOW} count)`);
}

/** For kinds that are never cached. */
export const neverKept = (why: string): Rule<number | undefined> => ({
  wanted: `0: ${why}`,
  fits: (value) => value === 0,
  type: "number",
  isHidden: true,
  fallback: undefined,
});

const NOT_WITH_REPLICAS = neverKept("a client with replicas caches no lock, because they would not know it");

/** The options of `lock`, for a client with such settings. */
export const lingering = ({ grantWindow, replicas }: Settings) => ({
  ...PASSING,
  ...REENTRANCE,
  linger: replicas > 0 ? NOT_WITH_REPLICAS : { ...lingerUpTo(grantWindow), fallback: undefined },
});

export const PASSING = { localHandoffs: CLIENT.localHandoffs };
/** For locks with `fair: true`. */
export const NEVER_PASSED = neverKept(
  "with fair: true there are no local hand-offs, or the order would not hold",
);
const FAIR_READ_WRITE = {
  ...REENTRANCE,
  fair: flag(false),
  localHandoffs: NEVER_PASSED,
  linger: neverKept("with fair: true no reads are cached, because each reader has a place of its own"),
};

/** `rules`: for a client with such settings, see `lingering`. @throws TypeError, RangeError */
export const checkReadWrite = (rules: ReturnType<typeof lingering>, options: unknown) => {
  const isFair = (options as ReadWriteOptions | null | undefined)?.fair === true;
  const all = isFair ? FAIR_READ_WRITE : { ...rules, fair: FAIR_READ_WRITE.fair };
  return checkOptions("Cannot create a read-write lock", all, options);
};

export const CLOSE = { grace: time(0, GRACE) };
export const CHECK = { timeout: time(LEASE_MIN, CHECK_TIMEOUT), replicas: CLIENT.replicas };

const LEASE = time(LEASE_MIN, undefined);

/** A lease, or its extension. `longest`: the longest one possible, in ms. */
export const leaseUpTo = (longest: number | undefined): Rule<number | undefined> =>
  longest === undefined ? LEASE : time(LEASE_MIN, undefined, longest, `${longest} (longestLease)`);

/** `names`: of the lock, or of several, quoted. */
export function checkExtension(names: string, ms: unknown, longest?: number): void {
  const what = `Cannot extend the lease of ${names}`;
  if (ms === undefined) throw refuse(TypeError, what, "ms", "a whole number of milliseconds", ms);
  checkValue(what, "ms", ms, leaseUpTo(longest));
}
