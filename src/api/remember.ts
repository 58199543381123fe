import { quote } from "../util/quote.ts";
import { LABEL } from "./label.ts";
import { leaseUpTo } from "./options.ts";
import {
  type Checked,
  checkName,
  checkOptions,
  longTime,
  orInfinity,
  type Rule,
  refuse,
  signal,
  time,
} from "./validate.ts";

/** How long a result is for others, and how one call waits for it. Times are whole milliseconds. */
export interface RememberOptions {
  /**
   * How long after the end of the run new callers get its result, from 0 to 2^42. 0: only callers that
   * were already waiting.
   */
  keep: number;
  /** How long to wait while another caller runs; Infinity is allowed. 0: one attempt. Default: Infinity. */
  wait?: number | undefined;
  /**
   * What the result is for, such as the SHA-256 of a request: 1 to 128 characters of printable ASCII
   * without spaces. A call with another one is refused once there is a result. Left out: any result
   * will do.
   */
  fingerprint?: string | undefined;
  /**
   * How long others wait after the process that runs the body has crashed, from 10. The watchdog renews
   * it every third of this time while the body runs. Default: the client's `leaseTime` (30 000).
   */
  lease?: number | undefined;
  /** Cancels only the wait: the call rejects with `signal.reason`. A running body is not interrupted. */
  signal?: AbortSignal | undefined;
  /** What the call is for, 1 to 64 bytes of UTF-8: shown to people while it waits or runs. */
  label?: string | undefined;
}

const FINGERPRINT: Rule<string | undefined> = {
  wanted: "a string of 1 to 128 characters of printable ASCII without spaces",
  fits: (value) => typeof value === "string" && /^[!-~]{1,128}$/.test(value),
  type: "string",
  fallback: undefined,
};

const RULES = {
  // Checked separately: it is the only required option.
  keep: longTime<number | undefined>(0, undefined),
  wait: orInfinity(time(0, Number.POSITIVE_INFINITY)),
  fingerprint: FINGERPRINT,
  lease: leaseUpTo(undefined),
  signal,
  label: LABEL,
};

/** A call's options, checked and complete. */
export interface RunWanted extends Omit<Checked<typeof RULES>, "keep" | "lease"> {
  readonly keep: number;
  readonly lease: number;
}

/** `leaseTime`: the lease when the call names none, in ms. @throws TypeError, RangeError */
export function checkRemember(name: unknown, options: unknown, body: unknown, leaseTime: number): RunWanted {
  const what = `Cannot remember ${quote(checkName(name, NOT_REMEMBERED))}`;
  if (typeof options === "function")
    throw new TypeError(`${what}: remember takes (name, options, body), in this order`);
  if (typeof body !== "function") throw refuse(TypeError, what, "the third argument", "a function", body);
  const { keep, lease = leaseTime, ...more } = checkOptions(what, RULES, options);
  if (keep === undefined) throw refuse(TypeError, what, "keep", RULES.keep.wanted, keep);
  return { ...more, keep, lease };
}

/** The start of messages about a call with an unusable name. */
export const NOT_REMEMBERED = "Cannot remember anything";

/** What the body of `locks.remember` knows of its run. */
export interface ResultRun {
  /** The name under which its result will be remembered. */
  readonly name: string;
  /** The fencing token of this run: it grows with each run of this name. */
  readonly token: number;
  /**
   * Aborts with a LockLostError as soon as another process may also run the body. Hand it to everything
   * that can stop. Each read checks the clock, as that of a lease does.
   */
  readonly signal: AbortSignal;
  /** Is the run surely the only one at this moment? Computed from both clocks, without a round trip. */
  readonly held: boolean;
  /** How many ms are left before another process may run, if it is not renewed; 0: it is over. */
  readonly remaining: number;
  /**
   * Call it before anything irreversible: it detects a deadline that passed before any timer could fire.
   *
   * @throws LockLostError when another process may run; LockError `LOCK_RELEASED` after the body has ended.
   */
  assertHeld(): void;
}

/** A result, and which run has made it. */
export interface Remembered<T> {
  /** Each caller has its own copy, parsed from JSON: a Date is a string, also for the caller that ran. */
  readonly value: T;
  /** Has this call's own body made it? */
  readonly ran: boolean;
  /** The fencing token of the run that made it. */
  readonly token: number;
  /** When it was stored, by the server's clock, in ms since 1970. */
  readonly at: number;
}

/** A result that new callers get now. */
export interface RememberedNow<T> extends Omit<Remembered<T>, "ran"> {
  /** For how many ms more. */
  readonly remaining: number;
}
