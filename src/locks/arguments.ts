import { checkLockOptions, type Request } from "../options.ts";

/** How a lock checks what it is called with. */
export interface Checks {
  /** "Cannot lock 'x'": how its complaints begin. */
  readonly cannot: () => string;
  /** The lease when a call names none, in ms. */
  readonly leaseTime: number;
  /** No longer lease can be had, in ms. */
  readonly longest?: number | undefined;
  /** How often the lock may have been passed on in this process before a call gets it. Left out: as its kind has it. */
  readonly passes?: number | undefined;
}

/** Of `tryLock(wait, lease)` or `tryLock(options)`. @throws TypeError, RangeError */
export function tryRequest(checks: Checks, args: readonly unknown[]): Request {
  const [first, lease] = args;
  const { cannot } = checks;
  if (args.length > 2)
    throw new TypeError(`${cannot()}: tryLock takes (wait, lease) in milliseconds; there is no time unit`);
  if (typeof first !== "object" || first === null) return check(checks, { wait: first, lease }, 0);
  if (args.length > 1) throw new TypeError(`${cannot()}: tryLock takes (wait, lease) or (options)`);
  return check(checks, first, 0);
}

/** Of `lock(options)`. @throws TypeError, RangeError */
export function lockRequest(checks: Checks, args: readonly unknown[]): Request {
  if (args.length > 1) throw new TypeError(`${checks.cannot()}: lock takes one argument, the options`);
  return check(checks, args[0], Number.POSITIVE_INFINITY);
}

/** Of `withLock(body, options)` or `withLock(options, body)`. `Body`: what the function is called with, unchecked. @throws TypeError, RangeError */
export function bodyRequest<Body>(
  checks: Checks,
  args: readonly unknown[],
): { readonly body: Body; readonly request: Request } {
  const [body, options] = typeof args[0] === "function" ? args : [args[1], args[0]];
  if (typeof body !== "function" || args.length > 2) {
    throw new TypeError(`${checks.cannot()}: withLock takes a function, and options before or after it`);
  }
  return { body: body as Body, request: check(checks, options, Number.POSITIVE_INFINITY) };
}

function check({ cannot, leaseTime, longest, passes }: Checks, options: unknown, wait: number): Request {
  return checkLockOptions(cannot, options, { wait, leaseTime, longest, passes });
}
