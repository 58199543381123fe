import { LEASE_MIN } from "../defaults.ts";
import { encodeLabel, LABEL } from "../label.ts";
import { leaseUpTo } from "../options.ts";
import type { Request, Terms } from "../terms.ts";
import {
  type Checked,
  checkBody,
  checkOptions,
  checkValue,
  flag,
  orInfinity,
  signal,
  text,
  time,
  type What,
} from "../validate.ts";

const RULES = {
  wait: orInfinity(time(0, undefined)),
  lease: leaseUpTo(undefined),
  watchdog: flag(undefined),
  maxHold: orInfinity(time(LEASE_MIN, undefined)),
  signal,
  label: LABEL,
};

const BODY_RULES = { ...RULES, confirm: flag(false) };

interface BodyCall<Body> {
  readonly body: Body;
  readonly request: Request;
  readonly confirm: boolean;
}

/** What the locks of a client are called with. `what`, for messages: the lock's name, or those of several. */
export class CallRules {
  /** How often a lock may have been passed on in this process before a call gets it. Undefined: as its kind has it. */
  readonly passes: number | undefined;
  /** For how many ms the lock may stay with this process when it is unlocked. */
  readonly linger: number;
  /** Of a call without arguments, for all of them: `tryLock()`, and `lock()`. */
  readonly once: Request;
  readonly forever: Request;
  readonly #terms: Terms;
  readonly #options: typeof RULES;
  readonly #bodyOptions: typeof BODY_RULES;

  /** `leaseTime`: the lease when a call names none, in ms. `longest`: no longer one can be had. */
  constructor(leaseTime: number, longest: number | undefined, passes: number | undefined, linger: number) {
    this.#terms = { lease: leaseTime, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger };
    const lease = leaseUpTo(longest);
    this.#options = longest === undefined ? RULES : { ...RULES, lease };
    this.#bodyOptions = longest === undefined ? BODY_RULES : { ...BODY_RULES, lease };
    this.passes = passes;
    this.linger = linger;
    this.once = this.#request(0);
    this.forever = this.#request(Number.POSITIVE_INFINITY);
  }

  /** Of `tryLock(wait, lease)` or `tryLock(options)`. @throws TypeError, RangeError */
  tryLock(what: What, args: readonly unknown[]): Request {
    const [first, lease] = args;
    if (args.length > 2) refuse(what, "tryLock takes (wait, lease) in milliseconds; there is no time unit");
    if (typeof first === "object" && first !== null) {
      if (args.length > 1) refuse(what, "tryLock takes (wait, lease) or (options)");
      return this.#check(what, first, this.once);
    }
    if (first !== undefined) checkValue(what, "wait", first, RULES.wait);
    if (lease !== undefined) checkValue(what, "lease", lease, this.#options.lease);
    return this.#request((first ?? 0) as number, lease as number | undefined);
  }

  /** Of `lock(options)`. @throws TypeError, RangeError */
  lock(what: What, args: readonly unknown[]): Request {
    if (args.length > 1) refuse(what, "lock takes one argument, the options");
    return this.#check(what, args[0], this.forever);
  }

  /**
   * Of `withLock(body)` or `withLock(options, body)`. `Body`: what the function is called with, unchecked. `confirm`: must Redis say at
   * the end that the lock was held? @throws TypeError, RangeError
   */
  withLock<Body>(what: What, args: readonly unknown[], method = "withLock"): BodyCall<Body> {
    const { body, options } = checkBody<Body>(what, method, args);
    if (options === undefined) return { body, request: this.forever, confirm: false };
    const given = checkOptions(what, this.#bodyOptions, options);
    return { body, request: this.#complete(given, this.forever), confirm: given.confirm };
  }

  /** `without`: what no options mean. */
  #check(what: What, options: unknown, without: Request): Request {
    if (options === undefined) return without;
    return this.#complete(checkOptions(what, this.#options, options), without);
  }

  #complete(given: Checked<typeof RULES>, without: Request): Request {
    const { wait = without.wait, lease, watchdog, maxHold, signal, label } = given;
    const request = this.#request(wait, lease, watchdog, maxHold, signal);
    if (label === undefined) return request;
    return { ...request, terms: { ...request.terms, label: ` ${encodeLabel(label)}` } };
  }

  #request(
    wait: number,
    lease?: number,
    watchdog = lease === undefined,
    maxHold = Number.POSITIVE_INFINITY,
    signal?: AbortSignal,
  ): Request {
    const own = this.#terms;
    const isUsual = lease === undefined && watchdog && maxHold === own.maxHold;
    const terms = isUsual ? own : { lease: lease ?? own.lease, watchdog, maxHold, linger: own.linger };
    return { terms, wait, signal, explicit: lease ?? null, passes: this.passes };
  }
}

function refuse(what: What, why: string): never {
  throw new TypeError(`${text(what)}: ${why}`);
}
