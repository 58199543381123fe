import type { CheckOptions } from "./check/answer.ts";
import {
  CHECK_TIMEOUT,
  GRACE,
  GRANT_WINDOW,
  LABEL_BYTES_MAX,
  LEASE_MIN,
  LEASE_TIME,
  PASSES_MAX,
  REPLICA_TIMEOUT,
  REPLY_TIMEOUT,
} from "./defaults.ts";
import type { Terms } from "./lease/terms.ts";
import {
  checkConnection,
  checkCount,
  checkFlag,
  checkObject,
  checkSignal,
  checkTime,
  checkWellFormed,
  refuse,
  type What,
} from "./validate.ts";

/** How one acquisition waits and holds. Times are whole milliseconds. */
export interface LockOptions {
  /** How long to wait for the lock; Infinity is allowed. Default: 0 for `tryLock`, Infinity for `lock` and `withLock`. */
  wait?: number | undefined;
  /**
   * How long the lease lasts, from 10. Left out: the client's `leaseTime` (30 000), renewed by the watchdog while it is
   * held. Given: it ends after this time although the process lives, unless `watchdog` is true.
   */
  lease?: number | undefined;
  /** Renew the lease every third of its time while it is held. Default: true when `lease` is left out. */
  watchdog?: boolean | undefined;
  /** The lease is lost after this time even with the watchdog. Default: no limit. */
  maxHold?: number | undefined;
  /** Ends the waiting, and only that: the call rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
}

/** How a client works. Times are whole milliseconds. */
export interface LockClientOptions {
  /** The lease when a call names none. Default: 30 000. */
  leaseTime?: number | undefined;
  /**
   * How long a command may stay unanswered before its outcome counts as unknown. Default: 5 000. The first command of a
   * call with a shorter wait gets that wait, and 500 at least.
   */
  replyTimeout?: number | undefined;
  /**
   * The TTL of a lock that was handed over by message until its new holder is known to be awake; Infinity: always the
   * full lease. Default: 3 000. A stopped process or a lost host at the head of the queue costs the others this long.
   */
  grantWindow?: number | undefined;
  /**
   * How often a lock is passed on inside this process before it goes to the next one; 0: never. Given here it counts for
   * `lock`, `redissonLock` and `spinLock`. Default: 16; 0 for `redissonLock`, because Java would wait longer.
   */
  localPasses?: number | undefined;
  /**
   * How many replicas must have acknowledged a lock before its caller gets it; with fewer it is given back, and the call
   * rejects with NotReplicatedError. Each acquisition from Redis pays two more round trips, on a connection of its own.
   * It makes it less likely that a failover loses the lock, not impossible. Default: 0, which costs nothing.
   */
  replicas?: number | undefined;
  /** How long they may take, in ms. Default: 1 000. */
  replicaTimeout?: number | undefined;
  /**
   * "shared": commands travel on the connection that was given, which must not be blocked (BLPOP, MULTI without
   * pipeline, SUBSCRIBE). "own": on a duplicate of it. Default: "shared".
   */
  connection?: "shared" | "own" | undefined;
  /**
   * false: nested acquisitions do not re-enter what their scope holds; they wait, as any other caller does. For applications
   * in which work of one caller can run in the asynchronous context of another one. Then `locks.scope()` and
   * `lock.isHeldHere()` throw, and a multi-lock cannot see that it is nested out of order. Default: true.
   */
  scopes?: boolean | undefined;
}

/** How a lock is handed on. */
export interface PassingOptions {
  /**
   * How often this lock is passed on inside this process before it goes to the next one, 0 to 1 000; 0: never. Of two
   * callers with different numbers, the one that took the lock from Redis and the one that would be next, the smaller
   * number counts. Default: the client's `localPasses`.
   */
  localPasses?: number | undefined;
}

/** How a spin lock is named in Redis, and handed on. */
export interface SpinLockOptions extends PassingOptions {
  /** Stands before the name in the key, and in `lock.name`. Default: "". */
  prefix?: string | undefined;
}

/** How `close` treats what is still going on. */
export interface CloseOptions {
  /** How long holders may finish before their leases are taken, in ms. Default: 5 000. */
  grace?: number | undefined;
}

/** How `forceUnlock` takes a lock away. */
export interface ForceUnlockOptions {
  /** Tells the holder of a `lock` or `fairLock` by whose hand it lost it: 1 to 64 bytes of UTF-8. Default: it is not told. */
  label?: string | undefined;
}

/** A call's options, checked and complete. */
export interface Request {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** The lease that was asked for by number; null: none. A re-entry extends to it. */
  readonly explicit: number | null;
  /** How often the lock may have been passed on in this process before this call gets it. Left out: as its kind has it. */
  readonly passes?: number | undefined;
}

/** A client's options, checked and complete. */
export interface Settings
  extends Required<{
    [K in Exclude<keyof LockClientOptions, "localPasses">]: NonNullable<LockClientOptions[K]>;
  }> {
  /** Null: each kind has a number of its own. */
  readonly localPasses: number | null;
}

const LOCK_OPTIONS = ["wait", "lease", "watchdog", "maxHold", "signal"];

export function checkLockOptions(
  what: What,
  options: unknown,
  defaults: {
    wait: number;
    leaseTime: number;
    longest?: number | undefined;
    passes?: number | undefined;
  },
): Request {
  const given = checkObject(what, options, LOCK_OPTIONS);
  const { wait, lease, watchdog, maxHold, signal } = given as LockOptions;
  checkTime(what, "wait", wait, 0, true);
  checkTime(what, "lease", lease, LEASE_MIN, false, defaults.longest);
  checkTime(what, "maxHold", maxHold, LEASE_MIN, true);
  checkFlag(what, "watchdog", watchdog);
  checkSignal(what, signal);
  return {
    terms: {
      lease: lease ?? defaults.leaseTime,
      watchdog: watchdog ?? lease === undefined,
      maxHold: maxHold ?? Number.POSITIVE_INFINITY,
    },
    wait: wait ?? defaults.wait,
    signal,
    explicit: lease ?? null,
    passes: defaults.passes,
  };
}

export function checkClientOptions(options: unknown): Settings {
  const what = "Cannot create a lock client";
  const given = checkObject(what, options, [
    "leaseTime",
    "replyTimeout",
    "grantWindow",
    "localPasses",
    "replicas",
    "replicaTimeout",
    "connection",
    "scopes",
  ]) as LockClientOptions;
  const { leaseTime, replyTimeout, grantWindow, localPasses, replicas, replicaTimeout, connection } = given;
  checkTime(what, "leaseTime", leaseTime, LEASE_MIN, false);
  checkTime(what, "replyTimeout", replyTimeout, LEASE_MIN, false);
  checkTime(what, "grantWindow", grantWindow, LEASE_MIN, true);
  checkCount(what, "localPasses", localPasses, PASSES_MAX);
  checkCount(what, "replicas", replicas, 100);
  checkTime(what, "replicaTimeout", replicaTimeout, LEASE_MIN, false);
  checkConnection(what, connection);
  checkFlag(what, "scopes", given.scopes);
  return {
    leaseTime: leaseTime ?? LEASE_TIME,
    replyTimeout: replyTimeout ?? REPLY_TIMEOUT,
    grantWindow: grantWindow ?? GRANT_WINDOW,
    localPasses: localPasses ?? null,
    replicas: replicas ?? 0,
    replicaTimeout: replicaTimeout ?? REPLICA_TIMEOUT,
    connection: connection ?? "shared",
    scopes: given.scopes ?? true,
  };
}

export function checkGrace(options: unknown): number {
  const what = "Cannot close the lock client";
  const { grace } = checkObject(what, options, ["grace"]) as CloseOptions;
  checkTime(what, "grace", grace, 0, false);
  return grace ?? GRACE;
}

const CANNOT = "Cannot create a lock";

export function checkPassingOptions(options: unknown): PassingOptions {
  const given = checkObject(CANNOT, options, ["localPasses"]) as PassingOptions;
  checkCount(CANNOT, "localPasses", given.localPasses, PASSES_MAX);
  return given;
}

export function checkSpinOptions(options: unknown): PassingOptions & { readonly prefix: string } {
  const given = checkObject(CANNOT, options, ["prefix", "localPasses"]) as SpinLockOptions;
  const { prefix = "", localPasses } = given;
  if (typeof prefix !== "string") throw refuse(TypeError, CANNOT, "prefix", "a string", prefix);
  checkCount(CANNOT, "localPasses", localPasses, PASSES_MAX);
  return { prefix, localPasses };
}

/** For kinds without options. `why`: there are none. @throws TypeError when there are any. */
export function checkNoOptions(method: string, options: unknown, why: string): void {
  if (options !== undefined) throw new TypeError(`${CANNOT}: ${method} takes a name only; ${why}`);
}

/** `names`: of the lock, or of several, quoted. `longest`: no longer lease can be had, in ms. */
export function checkExtension(names: string, ms: unknown, longest?: number): void {
  const what = `Cannot extend the lease of ${names}`;
  if (ms === undefined) throw refuse(TypeError, what, "ms", "a whole number of milliseconds", ms);
  checkTime(what, "ms", ms, LEASE_MIN, false, longest);
}

export function checkForceUnlock(what: What, options: unknown): string | null {
  const { label } = checkObject(what, options, ["label"]) as ForceUnlockOptions;
  if (label === undefined) return null;
  const wanted = `a string of 1 to ${LABEL_BYTES_MAX} bytes of UTF-8`;
  if (typeof label !== "string") throw refuse(TypeError, what, "label", wanted, label);
  checkWellFormed(what, "label", label);
  const bytes = Buffer.byteLength(label);
  if (bytes < 1 || bytes > LABEL_BYTES_MAX) throw refuse(RangeError, what, "label", wanted, label);
  return label;
}

export function checkCheckOptions(
  options: unknown,
  replicas: number,
): { readonly timeout: number; readonly replicas: number } {
  const what = "Cannot check the lock client";
  const given = checkObject(what, options, ["timeout", "replicas"]) as CheckOptions;
  checkTime(what, "timeout", given.timeout, LEASE_MIN, false);
  checkCount(what, "replicas", given.replicas, 100);
  return { timeout: given.timeout ?? CHECK_TIMEOUT, replicas: given.replicas ?? replicas };
}
