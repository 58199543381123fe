// Checks the arguments of locks' methods, and makes them the requests that the engine takes.
import { encodeLabel, LABEL } from "../api/label.ts";
import { leaseUpTo } from "../api/options.ts";
import {
  type Checked,
  checkBody,
  checkOptions,
  checkValue,
  flag,
  isWhole,
  orInfinity,
  type Rule,
  signal,
  text,
  time,
  type What,
} from "../api/validate.ts";
import type { Terms } from "../core/lease/terms.ts";
import type { LockKind, Meant } from "../core/lock-kind.ts";
import { LEASE_MIN, RECALL_WAIT } from "../defaults.ts";
import { quote } from "../util/quote.ts";
import type { Request } from "./request.ts";

const PERMIT_RULES = {
  wait: orInfinity(time(0, undefined)),
  lease: leaseUpTo(undefined),
  watchdog: flag(undefined),
  maxHold: orInfinity(time(LEASE_MIN, undefined)),
  signal,
  label: LABEL,
};

const RULES = { ...PERMIT_RULES, reentrant: flag(undefined) };

/** The rules of acquisitions and of bodies. */
const OF_LOCKS = { call: RULES, body: { ...RULES, confirm: flag(false) } };
/** `reentrant` is an unknown option here, and so never given. */
const OF_PERMITS = { call: PERMIT_RULES, body: { ...PERMIT_RULES, confirm: flag(false) } } as typeof OF_LOCKS;

/** The options with which a lock was made. */
export interface LockSettings {
  /** Local hand-offs. Left out: its kind's number. */
  readonly passes?: number | undefined;
  /** Left out, both of these: the client's. */
  readonly linger?: number | undefined;
  readonly reentrant?: boolean | undefined;
}

interface BodyCall<Body> {
  readonly body: Body;
  readonly request: Request;
  readonly confirm: boolean;
}

/**
 * Checks the arguments of a client's locks. `what`, for messages: the lock's name, or those of
 * several.
 */
export class CallRules {
  /**
   * How many local hand-offs may come before a call gets the lock. Undefined: its kind's number.
   */
  readonly passes: number | undefined;
  /** How many ms the lock may stay with this process after an unlock. */
  readonly linger: number;
  /** May calls re-enter their scope's holds, unless they say otherwise? */
  readonly reentrant: boolean;
  /** The requests of calls without arguments: `tryLock()` and `lock()`. */
  readonly once: Request;
  readonly forever: Request;
  readonly #terms: Terms;
  /**
   * The last wait and lease given to `tryLock`, which the next call usually repeats, and their
   * request.
   */
  #latest: { readonly wait: unknown; readonly lease: unknown; readonly request: Request };
  readonly #options: typeof OF_LOCKS.call;
  readonly #bodyOptions: typeof OF_LOCKS.body;

  /**
   * `leaseTime`: the lease when a call names none, in ms. `longest`: the longest lease possible.
   * `isLock`: false for permits, which are never re-entered.
   */
  constructor(
    leaseTime: number,
    longest: number | undefined,
    { passes, linger = 0, reentrant = false }: LockSettings,
    isLock = true,
  ) {
    this.#terms = { lease: leaseTime, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger };
    const { call, body } = isLock ? OF_LOCKS : OF_PERMITS;
    const lease = leaseUpTo(longest);
    this.#options = longest === undefined ? call : { ...call, lease };
    this.#bodyOptions = longest === undefined ? body : { ...body, lease };
    this.passes = passes;
    this.linger = linger;
    this.reentrant = reentrant;
    this.once = this.#request(0);
    this.forever = this.#request(Number.POSITIVE_INFINITY);
    this.#latest = { wait: undefined, lease: undefined, request: this.once };
  }

  /** The request of `tryLock(wait, lease)` or `tryLock(options)`. @throws TypeError, RangeError */
  tryLock(what: What, args: readonly unknown[]): Request {
    const [first, lease] = args;
    const { wait, lease: latest, request } = this.#latest;
    if (first === wait && lease === latest && args.length <= 2) return request;
    if (args.length > 2) refuse(what, "tryLock takes (wait, lease) in milliseconds; there is no time unit");
    if (typeof first === "object" && first !== null) {
      if (args.length > 1) refuse(what, "tryLock takes (wait, lease) or (options)");
      return this.#check(what, first, this.once);
    }
    if (first !== undefined) checkValue(what, "wait", first, RULES.wait);
    if (lease !== undefined) checkValue(what, "lease", lease, this.#options.lease);
    const made = this.#request((first ?? 0) as number, lease as number | undefined);
    this.#latest = { wait: first, lease, request: made };
    return made;
  }

  /** The request of `lock(options)`. @throws TypeError, RangeError */
  lock(what: What, args: readonly unknown[]): Request {
    if (args.length > 1) refuse(what, "lock takes one argument, the options");
    return this.#check(what, args[0], this.forever);
  }

  /**
   * The request of `withLock(body)` or `withLock(options, body)`. `Body`: the function's type,
   * unchecked. `confirm`: must Redis confirm at the end that the lock was held? @throws TypeError,
   * RangeError
   */
  withLock<Body>(what: What, args: readonly unknown[], method = "withLock"): BodyCall<Body> {
    const { body, options } = checkBody<Body>(what, method, args);
    if (options === undefined) return { body, request: this.forever, confirm: false };
    const given = checkOptions(what, this.#bodyOptions, options);
    return { body, request: this.#complete(given, this.forever), confirm: given.confirm };
  }

  /** `without`: the request without options. */
  #check(what: What, options: unknown, without: Request): Request {
    if (options === undefined) return without;
    return this.#complete(checkOptions(what, this.#options, options), without);
  }

  #complete(given: Checked<typeof RULES>, without: Request): Request {
    const { wait = without.wait, lease, watchdog, maxHold, signal, label, reentrant } = given;
    const request = this.#request(wait, lease, watchdog, maxHold, signal, reentrant);
    if (label === undefined) return request;
    return { ...request, terms: { ...request.terms, label: ` ${encodeLabel(label)}` } };
  }

  #request(
    wait: number,
    lease?: number,
    watchdog = lease === undefined,
    maxHold = Number.POSITIVE_INFINITY,
    signal?: AbortSignal,
    says?: boolean,
  ): Request {
    const own = this.#terms;
    const isUsual = lease === undefined && watchdog && maxHold === own.maxHold;
    const terms = isUsual ? own : { lease: lease ?? own.lease, watchdog, maxHold, linger: own.linger };
    return {
      terms,
      wait,
      signal,
      explicit: lease ?? null,
      passes: this.passes,
      reentrant: says ?? this.reentrant,
      says,
    };
  }
}

function refuse(what: What, why: string): never {
  throw new TypeError(`${text(what)}: ${why}`);
}

// ---- calls about the holder of a lock

/** ms. */
export const checkRecall = (name: string, options: unknown): number =>
  checkOptions(`Cannot recall ${quote(name)}`, { wait: time(1, RECALL_WAIT) }, options).wait;

const TOKEN: Rule<number | undefined> = {
  wanted: "a whole number from 1 to 2^53-1, as inspect() shows it",
  fits: (value) => isWhole(value, 1, Number.MAX_SAFE_INTEGER),
  type: "number",
  fallback: undefined,
};

const HOLDER: Rule<string | undefined> = {
  wanted: "the id of a holder, as inspect() and list() show it",
  fits: (value) => typeof value === "string" && value !== "",
  type: "string",
  fallback: undefined,
};

const FORCE = { label: LABEL, token: TOKEN, holder: HOLDER };

/** What is done by force, where that is not an unlock. */
const FORCED: Readonly<Record<string, string>> = { election: "end the term of", remember: "stop the run of" };

/** Null: none is given. @throws TypeError, RangeError */
export function checkForceUnlock(
  name: string,
  options: unknown,
  { hasTokens, protocol }: Pick<LockKind, "hasTokens" | "protocol">,
): { label: string | null; meant: Meant } {
  const what = `Cannot ${FORCED[protocol] ?? "unlock"} ${quote(name)} by force`;
  const { label = null, token = null, holder = null } = checkOptions(what, FORCE, options);
  if (token !== null && !hasTokens)
    throw new TypeError(`${what}: its kind has no tokens; name the holder by its id: { holder: party.id }`);
  return { label, meant: { holder, token } };
}
