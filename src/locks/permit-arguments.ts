// Checks the arguments of semaphores' methods, and makes them the requests that the engine takes.
import { NEVER_PASSED, neverKept, PASSING } from "../api/options.ts";
import type { SemaphoreOptions } from "../api/semaphore.ts";
import { checkOptions, checkValue, flag, isWhole, type Rule } from "../api/validate.ts";
import { PERMITS_MAX } from "../defaults.ts";
import { quote } from "../util/quote.ts";
import type { CallRules } from "./arguments.ts";
import type { Request } from "./request.ts";

const permitsUpTo = <T>(most: number, fallback: T): Rule<number | T> => ({
  wanted: `a whole number from 1 to ${most}`,
  fits: (value) => isWhole(value, 1, most),
  type: "number",
  fallback,
});

const SEMAPHORE = {
  permits: permitsUpTo(PERMITS_MAX, undefined),
  linger: neverKept("unused permits are not cached, because other callers may wait for them"),
  fair: flag(false),
  ...PASSING,
};
const FAIR_SEMAPHORE = { ...SEMAPHORE, localHandoffs: NEVER_PASSED };

/**
 * How many permits there are by the caller's code, and how they are handed on. @throws TypeError,
 * RangeError
 */
export const checkSemaphore = (options: unknown) => {
  const isFair = (options as SemaphoreOptions | null | undefined)?.fair === true;
  return checkOptions("Cannot create a semaphore", isFair ? FAIR_SEMAPHORE : SEMAPHORE, options);
};

/** @throws TypeError, RangeError */
export function checkPermits(name: string, permits: unknown): number {
  return checkNumber(`Cannot set the permits of ${quote(name)}`, "permits", permits, PERMITS_MAX);
}

interface BodyCall<Body> {
  readonly body: Body;
  readonly request: Request;
  readonly confirm: boolean;
}

/** Checks the arguments of a semaphore: those of a lock, after the number of permits. */
export class PermitRules {
  readonly #rules: CallRules;
  readonly #name: string;
  readonly #permits: number | null;

  constructor(rules: CallRules, name: string, permits: number | null) {
    this.#rules = rules;
    this.#name = name;
    this.#permits = permits;
  }

  /** The request of `tryAcquire(units, wait, lease)`, `(units, options)` or `(options)`. */
  tryAcquire(args: readonly unknown[]): Request {
    const [units, rest] = this.#units(args);
    const isWrong = rest.length > 2 || (rest.length > 1 && isObject(rest[0]));
    if (isWrong) this.#refuse("tryAcquire takes (units, wait, lease) in milliseconds, or (units, options)");
    return this.#wanting(units, this.#rules.tryLock(this.#what, rest));
  }

  /** The request of `acquire(units, options)` or `(options)`. */
  acquire(args: readonly unknown[]): Request {
    const [units, rest] = this.#units(args);
    if (rest.length > 1) this.#refuse("acquire takes (units, options)");
    return this.#wanting(units, this.#rules.lock(this.#what, rest));
  }

  /** The request of `withPermits(units, options, body)`; units and options may be left out. */
  withPermits<Body>(args: readonly unknown[]): BodyCall<Body> {
    const [units, rest] = typeof args[0] === "function" ? [1, args] : this.#units(args);
    const call = this.#rules.withLock<Body>(this.#what, rest, "withPermits, after how many,");
    return { ...call, request: this.#wanting(units, call.request) };
  }

  /** How many permits, and the remaining arguments. */
  #units(args: readonly unknown[]): [number, readonly unknown[]] {
    const [first] = args;
    if (isObject(first)) return [1, args];
    const most = this.#permits ?? PERMITS_MAX;
    return [first === undefined ? 1 : checkNumber(this.#what, "units", first, most), args.slice(1)];
  }

  #wanting(units: number, request: Request): Request {
    return { ...request, terms: { ...request.terms, permits: { units, of: this.#permits } } };
  }

  get #what(): string {
    return `Cannot take permits of ${quote(this.#name)}`;
  }

  #refuse(why: string): never {
    throw new TypeError(`${this.#what}: ${why}`);
  }
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

function checkNumber(what: string, name: string, value: unknown, most: number): number {
  // Checked as a required value: left out is refused too.
  checkValue(what, name, value, permitsUpTo(most, undefined));
  return value as number;
}
