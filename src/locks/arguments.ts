import { LEASE_MIN } from "../defaults.ts";
import { leaseUpTo, type Request } from "../options.ts";
import { checkOptions, checkValue, flag, orInfinity, signal, text, time } from "../validate.ts";

/** How a lock checks what it is called with. */
export interface Checks {
  /** The lock's name, or those of several. */
  readonly names: readonly string[];
  /** The lease when a call names none, in ms. */
  readonly leaseTime: number;
  /** No longer lease can be had, in ms. */
  readonly longest?: number | undefined;
  /** How often the lock may have been passed on in this process before a call gets it. Left out: as its kind has it. */
  readonly passes?: number | undefined;
}

const RULES = {
  wait: orInfinity(time(0, undefined)),
  lease: leaseUpTo(undefined),
  watchdog: flag(undefined),
  maxHold: orInfinity(time(LEASE_MIN, undefined)),
  signal,
};

/** Of `tryLock(wait, lease)` or `tryLock(options)`. @throws TypeError, RangeError */
export function tryRequest(checks: Checks, args: readonly unknown[]): Request {
  const [first, lease] = args;
  const { names, longest } = checks;
  if (args.length > 2) refuse(checks, "tryLock takes (wait, lease) in milliseconds; there is no time unit");
  if (typeof first === "object" && first !== null) {
    if (args.length > 1) refuse(checks, "tryLock takes (wait, lease) or (options)");
    return check(checks, first, 0);
  }
  if (first !== undefined) checkValue(names, "wait", first, RULES.wait);
  if (lease !== undefined) checkValue(names, "lease", lease, leaseUpTo(longest));
  return request(checks, (first ?? 0) as number, lease as number | undefined);
}

/** Of `lock(options)`. @throws TypeError, RangeError */
export function lockRequest(checks: Checks, args: readonly unknown[]): Request {
  if (args.length > 1) refuse(checks, "lock takes one argument, the options");
  return check(checks, args[0], Number.POSITIVE_INFINITY);
}

/** Of `withLock(body, options)` or `withLock(options, body)`. `Body`: what the function is called with, unchecked. @throws TypeError, RangeError */
export function bodyRequest<Body>(
  checks: Checks,
  args: readonly unknown[],
): { readonly body: Body; readonly request: Request } {
  const [body, options] = typeof args[0] === "function" ? args : [args[1], args[0]];
  if (typeof body !== "function" || args.length > 2)
    refuse(checks, "withLock takes a function, and options before or after it");
  return { body: body as Body, request: check(checks, options, Number.POSITIVE_INFINITY) };
}

function check(checks: Checks, options: unknown, wait: number): Request {
  if (options === undefined) return request(checks, wait);
  const { names, longest } = checks;
  const rules = longest === undefined ? RULES : { ...RULES, lease: leaseUpTo(longest) };
  const given = checkOptions(names, rules, options);
  return request(checks, given.wait ?? wait, given.lease, given.watchdog, given.maxHold, given.signal);
}

function request(
  { leaseTime, passes }: Checks,
  wait: number,
  lease?: number,
  watchdog = lease === undefined,
  maxHold = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): Request {
  const terms = { lease: lease ?? leaseTime, watchdog, maxHold };
  return { terms, wait, signal, explicit: lease ?? null, passes };
}

function refuse({ names }: Checks, why: string): never {
  throw new TypeError(`${text(names)}: ${why}`);
}
