import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  GRACE,
  GRANT_WINDOW,
  LEASE_MIN,
  LEASE_TIME,
  LOCAL_PASSES,
  LONGEST_LEASE,
  NAME_BYTES_MAX,
  NODE_TIMEOUT,
  REPLICA_TIMEOUT,
  REPLY_TIMEOUT,
  RETRY_DELAY,
  TIMER_MAX,
  TRANSACTION_RETRIES,
} from "./defaults.ts";
import { quote } from "./errors.ts";
import type { Terms } from "./lease/terms.ts";

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
  /** How often the lock is passed on inside this process before it goes to the next one. Default: 16. 0: never. */
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
}

/** How a spin lock is named in Redis. */
export interface SpinLockOptions {
  /** Stands before the name in the key, and in `lock.name`. Default: "". */
  prefix?: string | undefined;
}

/** How a client of several masters works. Times are whole milliseconds. */
export interface QuorumClientOptions
  extends Pick<LockClientOptions, "leaseTime" | "replyTimeout" | "localPasses" | "connection"> {
  /**
   * How long a node may leave a vote unanswered. It costs nothing while the others can decide without it. Default: 400,
   * and never longer than the lease. A node that is still being connected to for the first time gets `replyTimeout`.
   */
  nodeTimeout?: number | undefined;
  /** After a split vote the next try comes after a random time up to this, and 50 more. Default: 150. */
  retryDelay?: number | undefined;
  /**
   * Longer leases and extensions are refused. It must be the same in every client of these nodes, because `restartDelay`
   * follows from it. Default: 60 000.
   */
  longestLease?: number | undefined;
  /**
   * A node whose process is younger does not vote: it may have forgotten locks that are still held. 0: every node votes at
   * once, which is right only where no node ever forgets (`appendfsync always`) or restarts are delayed by other means.
   * Else it must outlast `longestLease`. Default: `longestLease`, 1 % and 2 ms.
   */
  restartDelay?: number | undefined;
}

/** How `close` treats what is still going on. */
export interface CloseOptions {
  /** How long holders may finish before their leases are taken, in ms. Default: 5 000. */
  grace?: number | undefined;
}

/** How a transaction of `optimistic` is tried. */
export interface OptimisticOptions {
  /** How often the body may run again after a conflict or a lost connection. Default: 16. Infinity is allowed. */
  retries?: number | undefined;
  /** Ends it before EXEC was sent: the call rejects with `signal.reason`, and nothing is written. */
  signal?: AbortSignal | undefined;
}

/** A call's options, checked and complete. */
export interface Request {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** The lease that was asked for by number; null: none. A re-entry extends to it. */
  readonly explicit: number | null;
}

/** A client's options, checked and complete. */
export type Settings = Required<{ [K in keyof LockClientOptions]: NonNullable<LockClientOptions[K]> }>;

/** The same for a client of several masters. */
export type QuorumSettings = Required<{
  [K in keyof QuorumClientOptions]: NonNullable<QuorumClientOptions[K]>;
}>;

/** What begins every message: "Cannot lock 'order:42'". A function where it is put together only when it is needed. */
type What = string | (() => string);

const LOCK_OPTIONS = ["wait", "lease", "watchdog", "maxHold", "signal"];

export function checkLockOptions(
  what: What,
  options: unknown,
  defaults: { wait: number; leaseTime: number; longest?: number | undefined },
): Request {
  const given = checkObject(what, options, LOCK_OPTIONS);
  const { wait, lease, watchdog, maxHold, signal } = given as LockOptions;
  checkTime(what, "wait", wait, 0, true);
  checkTime(what, "lease", lease, LEASE_MIN, false, defaults.longest);
  checkTime(what, "maxHold", maxHold, LEASE_MIN, true);
  if (watchdog !== undefined && typeof watchdog !== "boolean")
    throw refuse(TypeError, what, "watchdog", "true or false", watchdog);
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
  ]) as LockClientOptions;
  const { leaseTime, replyTimeout, grantWindow, localPasses, replicas, replicaTimeout, connection } = given;
  checkTime(what, "leaseTime", leaseTime, LEASE_MIN, false);
  checkTime(what, "replyTimeout", replyTimeout, LEASE_MIN, false);
  checkTime(what, "grantWindow", grantWindow, LEASE_MIN, true);
  checkCount(what, "localPasses", localPasses, 1_000);
  checkCount(what, "replicas", replicas, 100);
  checkTime(what, "replicaTimeout", replicaTimeout, LEASE_MIN, false);
  checkConnection(what, connection);
  return {
    leaseTime: leaseTime ?? LEASE_TIME,
    replyTimeout: replyTimeout ?? REPLY_TIMEOUT,
    grantWindow: grantWindow ?? GRANT_WINDOW,
    localPasses: localPasses ?? LOCAL_PASSES,
    replicas: replicas ?? 0,
    replicaTimeout: replicaTimeout ?? REPLICA_TIMEOUT,
    connection: connection ?? "shared",
  };
}

export function checkQuorumOptions(options: unknown): QuorumSettings {
  const what = "Cannot create a lock client";
  const given = checkObject(what, options, [
    "leaseTime",
    "replyTimeout",
    "localPasses",
    "connection",
    "nodeTimeout",
    "retryDelay",
    "longestLease",
    "restartDelay",
  ]) as QuorumClientOptions;
  const { longestLease = LONGEST_LEASE, localPasses, connection } = given;
  checkTime(what, "longestLease", longestLease, LEASE_MIN, false);
  // Known before it is checked: a leaseTime that is left out must fit too.
  const { leaseTime = Math.min(LEASE_TIME, longestLease), replyTimeout = REPLY_TIMEOUT } = given;
  checkTime(what, "leaseTime", leaseTime, LEASE_MIN, false, longestLease);
  checkTime(what, "replyTimeout", replyTimeout, LEASE_MIN, false);
  checkCount(what, "localPasses", localPasses, 1_000);
  checkConnection(what, connection);
  const { nodeTimeout = NODE_TIMEOUT, retryDelay = RETRY_DELAY } = given;
  checkTime(what, "nodeTimeout", nodeTimeout, LEASE_MIN, false);
  checkTime(what, "retryDelay", retryDelay, LEASE_MIN, false);
  const outlasting = Math.ceil(longestLease * (1 + CLOCK_DRIFT)) + CLOCK_GRAIN;
  const { restartDelay = outlasting } = given;
  checkTime(what, "restartDelay", given.restartDelay, 0, false);
  if (restartDelay > 0 && restartDelay < outlasting)
    throw refuse(
      RangeError,
      what,
      "restartDelay",
      `0, or at least ${outlasting} (longestLease and the drift)`,
      restartDelay,
    );
  return {
    leaseTime,
    replyTimeout,
    localPasses: localPasses ?? LOCAL_PASSES,
    connection: connection ?? "shared",
    nodeTimeout,
    retryDelay,
    longestLease,
    restartDelay,
  };
}

export function checkGrace(options: unknown): number {
  const what = "Cannot close the lock client";
  const { grace } = checkObject(what, options, ["grace"]) as CloseOptions;
  checkTime(what, "grace", grace, 0, false);
  return grace ?? GRACE;
}

export function checkTransaction(
  keys: unknown,
  body: unknown,
  options: unknown,
): { keys: readonly string[]; retries: number; signal: AbortSignal | undefined } {
  const what = "Cannot run a transaction";
  if (!Array.isArray(keys)) throw refuse(TypeError, what, "keys", "an array of strings", keys);
  if (keys.length === 0) throw new RangeError(`${what}: keys must name one key at least`);
  for (const [index, key] of keys.entries()) {
    if (typeof key !== "string") throw refuse(TypeError, what, `keys[${index}]`, "a string", key);
    if (key === "") throw refuse(RangeError, what, `keys[${index}]`, "a non-empty string", key);
  }
  if (typeof body !== "function") throw refuse(TypeError, what, "body", "a function", body);
  const { retries, signal } = checkObject(what, options, ["retries", "signal"]) as OptimisticOptions;
  if (retries !== Number.POSITIVE_INFINITY) checkCount(what, "retries", retries, TIMER_MAX);
  checkSignal(what, signal);
  return { keys: [...keys], retries: retries ?? TRANSACTION_RETRIES, signal };
}

export function checkSpinOptions(options: unknown): { readonly prefix: string } {
  const what = "Cannot create a lock";
  const { prefix = "" } = checkObject(what, options, ["prefix"]) as SpinLockOptions;
  if (typeof prefix !== "string") throw refuse(TypeError, what, "prefix", "a string", prefix);
  return { prefix };
}

/** `names`: of the lock, or of several, quoted. `longest`: no longer lease can be had, in ms. */
export function checkExtension(names: string, ms: unknown, longest?: number): void {
  const what = `Cannot extend the lease of ${names}`;
  if (ms === undefined) throw refuse(TypeError, what, "ms", "a whole number of milliseconds", ms);
  checkTime(what, "ms", ms, LEASE_MIN, false, longest);
}

export function checkName(name: unknown): string {
  const what = "Cannot create a lock";
  if (typeof name !== "string") throw refuse(TypeError, what, "name", "a string", name);
  if (name === "") throw refuse(RangeError, what, "name", "a non-empty string", name);
  checkWellFormed(what, "name", name);
  const bytes = Buffer.byteLength(name);
  if (bytes > NAME_BYTES_MAX) {
    throw new RangeError(
      `${what}: name must be at most ${NAME_BYTES_MAX} bytes of UTF-8, received ${bytes} bytes (${quote(name)})`,
    );
  }
  return name;
}

/** A lone surrogate has no UTF-8 form: two different names would be one in Redis. */
export function checkWellFormed(what: What, name: string, value: string): void {
  if (/\p{Surrogate}/u.test(value)) throw refuse(RangeError, what, name, "a well-formed string", value);
}

export function checkObject(what: What, options: unknown, known: readonly string[]): object {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null || Array.isArray(options) || isSignal(options)) {
    throw refuse(TypeError, what, "options", "an object", options);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key))
      throw new TypeError(`${text(what)}: unknown option ${quote(key)}; known are ${known.join(", ")}`);
  }
  return options;
}

export function checkTime(
  what: What,
  name: string,
  value: unknown,
  from: number,
  isInfinityFine: boolean,
  longest = TIMER_MAX,
): void {
  if (value === undefined || (isInfinityFine && value === Number.POSITIVE_INFINITY)) return;
  if (isWhole(value, from, longest)) return;
  const end = longest === TIMER_MAX ? "2^31-1" : `${longest} (longestLease)`;
  const wanted = `a whole number of milliseconds from ${from} to ${end}${isInfinityFine ? ", or Infinity" : ""}`;
  throw refuse(typeof value === "number" ? RangeError : TypeError, what, name, wanted, value);
}

function checkConnection(what: What, connection: unknown): void {
  if (connection !== undefined && connection !== "shared" && connection !== "own")
    throw refuse(TypeError, what, "connection", '"shared" or "own"', connection);
}

function checkCount(what: What, name: string, value: unknown, to: number): void {
  if (value === undefined || isWhole(value, 0, to)) return;
  const kind = typeof value === "number" ? RangeError : TypeError;
  throw refuse(kind, what, name, `a whole number from 0 to ${to}`, value);
}

function checkSignal(what: What, signal: unknown): void {
  if (signal !== undefined && !isSignal(signal))
    throw refuse(TypeError, what, "signal", "an AbortSignal", signal);
}

export const isWhole = (value: unknown, from: number, to: number): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= from && value <= to;

const isSignal = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value;

export function refuse(
  kind: typeof TypeError | typeof RangeError,
  what: What,
  name: string,
  wanted: string,
  received: unknown,
): Error {
  return new kind(`${text(what)}: ${name} must be ${wanted}, received ${show(received)}`);
}

const text = (what: What): string => (typeof what === "string" ? what : what());

export function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "an array";
  if (isSignal(value)) return "an AbortSignal";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
