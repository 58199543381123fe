import { LEASE_MIN } from "../defaults.ts";
import { quote } from "../util/quote.ts";
import { leaseUpTo } from "./options.ts";
import {
  type Checked,
  checkName,
  checkOptions,
  flag,
  longTime,
  type Rule,
  refuse,
  signal,
} from "./validate.ts";

/**
 * How often something runs over all processes, and what happens after a failed run. Times are whole
 * milliseconds.
 */
export interface OnceOptions {
  /**
   * At most one run begins in this time, from 10; by the clock of the Redis server. Give the same in
   * all processes: each caller has its own interval counted, from the beginning of the last run.
   */
  every: number;
  /**
   * true: the intervals are slots of the server's clock, counted from 1970 in UTC: with `every:
   * 3_600_000` one run in each hour, the right choice for a cron job. false: they count from the
   * beginning of the last run. Default: false.
   */
  aligned?: boolean | undefined;
  /**
   * How long the turn outlives a process that crashes in the body, from 10. The watchdog renews it
   * every third of this time while the body runs. Default: the client's `leaseTime` (30 000).
   */
  lease?: number | undefined;
  /**
   * What happens to the turn when the process crashes in the body, or the body throws. "again": it
   * is free when the lease is over, and the next caller runs the body again. "keep": it stays taken
   * until its interval is over. Default: "again".
   */
  onCrash?: "again" | "keep" | undefined;
  /**
   * Cancels only the request: the call rejects with `signal.reason`. A running body is not
   * interrupted.
   */
  signal?: AbortSignal | undefined;
}

const RULES = {
  // Checked separately: it is the only required option.
  every: longTime<number | undefined>(LEASE_MIN, undefined),
  aligned: flag(false),
  lease: leaseUpTo(undefined),
  onCrash: {
    wanted: '"again" or "keep"',
    fits: (value) => value === "again" || value === "keep",
    fallback: "again",
  } as Rule<"again" | "keep">,
  signal,
};

/** A call's options, checked and complete. */
export interface Interval extends Omit<Checked<typeof RULES>, "every" | "lease"> {
  readonly every: number;
  readonly lease: number;
}

/** `leaseTime`: the lease when the call names none, in ms. @throws TypeError, RangeError */
export function checkOnce(name: unknown, options: unknown, body: unknown, leaseTime: number): Interval {
  const what = `Cannot run ${quote(checkName(name, CANNOT))} once per interval`;
  if (typeof options === "function" && body !== undefined)
    throw new TypeError(`${what}: runOnce takes (name, options, body), in this order`);
  if (typeof body !== "function") throw refuse(TypeError, what, "the third argument", "a function", body);
  const given = checkOptions(what, RULES, options);
  const { every, lease = leaseTime } = given;
  if (every === undefined) throw refuse(TypeError, what, "every", RULES.every.wanted, every);
  return { ...given, every, lease };
}

/** The start of messages about a call with an unusable name. */
const CANNOT = "Cannot run anything once per interval";

/** What the body of `locks.runOnce` knows of its run. */
export interface Turn {
  /** The name that runs once per interval. */
  readonly name: string;
  /**
   * When this run began, by the server's clock, in ms since 1970. With `aligned` it says which slot
   * it is.
   */
  readonly begin: number;
  /**
   * Aborts with a LockLostError as soon as another process may also run the body: the turn was not
   * renewed in time, or it is gone from Redis. Hand it to everything that can stop. Each read checks
   * the clock, as that of a lease does.
   */
  readonly signal: AbortSignal;
  /** Is the turn surely ours at this moment? Computed from both clocks, without a round trip. */
  readonly held: boolean;
  /**
   * Call it before anything irreversible: it detects a deadline that passed before any timer could fire.
   *
   * @throws LockLostError when the turn is lost; LockError `LOCK_RELEASED` when the body has ended.
   */
  assertHeld(): void;
  /** ms until the turn is lost unless it is renewed; 0 when it is not held. */
  readonly remaining: number;
}

/**
 * The result of `locks.runOnce`. `running`: another process runs the body now, or has crashed in it
 * or thrown less than a lease ago, which look the same in Redis; false: it ran in this interval.
 * `remaining`: ms until the next run may begin by this call's interval; while one runs, until its
 * lease ends, which is renewed.
 */
export type OnceResult<T> =
  | { readonly ran: true; readonly value: T }
  | {
      readonly ran: false;
      readonly value?: undefined;
      readonly running: boolean;
      readonly remaining: number;
    };
