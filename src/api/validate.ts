import { NAME_BYTES_MAX } from "../defaults.ts";
import { quote, quoteAll } from "../util/quote.ts";
import { TIMER_MAX } from "../util/timers.ts";
import { renamedOption } from "./renamed.ts";

/**
 * The start of every message: "Cannot close the lock client". Names: of locks, "Cannot lock …",
 * built only for an error.
 */
export type What = string | readonly string[];

/**
 * `wanted`: what an option must be, as messages say it. `type`: its type, if other values of that
 * type are a RangeError. `fallback`: the value when it is left out.
 */
export interface Rule<T> {
  readonly wanted: string;
  readonly fits: (value: unknown) => boolean;
  readonly type?: "number" | "string";
  /**
   * It exists only to be refused with its reason: messages do not list it among the known options.
   */
  readonly isHidden?: true;
  readonly fallback: T;
}

/** A set of options, in the order in which messages name them. */
export type Rules = Readonly<Record<string, Rule<unknown>>>;

/** The same set, checked and complete. */
export type Checked<R extends Rules> = { readonly [K in keyof R]: R[K]["fallback"] };

/** A whole number of milliseconds. `end`: how messages write the longest one. */
export const time = <T>(from: number, fallback: T, to = TIMER_MAX, end = "2^31-1") =>
  whole(`a whole number of milliseconds from ${from} to ${end}`, from, to, fallback);

/** A time that no timer of this process waits for, so months are fine. */
export const longTime = <T>(from: number, fallback: T) => time(from, fallback, 2 ** 42, "2^42");

export const count = <T>(to: number, fallback: T) => whole(`a whole number from 0 to ${to}`, 0, to, fallback);

const whole = <T>(wanted: string, from: number, to: number, fallback: T): Rule<number | T> => {
  return { wanted, fits: (value) => isWhole(value, from, to), type: "number", fallback };
};

export const orInfinity = <T>(rule: Rule<T>, wanted = `${rule.wanted}, or Infinity`): Rule<T> => {
  return { ...rule, wanted, fits: (value) => value === Number.POSITIVE_INFINITY || rule.fits(value) };
};

export const flag = <T>(fallback: T): Rule<boolean | T> => {
  return { wanted: "true or false", fits: (value) => typeof value === "boolean", fallback };
};

export const signal = { wanted: "an AbortSignal", fits: (value) => isSignal(value) } as Rule<
  AbortSignal | undefined
>;

/** What comes before all keys of a client. A lone surrogate would become another character in Redis. */
export const PREFIX: Rule<string> = {
  wanted: `a well-formed string of 1 to ${NAME_BYTES_MAX} bytes of UTF-8`,
  fits: (value) =>
    typeof value === "string" &&
    value !== "" &&
    value.isWellFormed() &&
    Buffer.byteLength(value) <= NAME_BYTES_MAX,
  type: "string",
  fallback: "",
};

/** Checked by its user. */
export const anything = { wanted: "", fits: () => true, fallback: undefined } as Rule<unknown>;

/** @throws TypeError or RangeError, also for an option that the rules do not know. */
export function checkOptions<R extends Rules>(what: What, rules: R, options: unknown = {}): Checked<R> {
  if (typeof options !== "object" || options === null || Array.isArray(options) || isSignal(options))
    throw refuse(TypeError, what, "options", "an object", options);
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(rules, key));
  if (unknown !== undefined) {
    const renamed = renamedOption(unknown);
    if (renamed !== null) throw new TypeError(`${text(what)}: unknown option ${quote(unknown)}: ${renamed}`);
    const known = Object.keys(rules)
      .filter((key) => !rules[key]?.isHidden)
      .join(", ");
    throw new TypeError(`${text(what)}: unknown option ${quote(unknown)}; known are ${known}`);
  }
  const given = options as Record<string, unknown>;
  const checked: Record<string, unknown> = {};
  for (const name in rules) {
    const rule = rules[name] as Rule<unknown>;
    const value = given[name];
    checked[name] = value === undefined ? rule.fallback : checkValue(what, name, value, rule);
  }
  return checked as Checked<R>;
}

/**
 * The arguments `(body)` or `(options, body)` of a method. `Body`: the function's type, unchecked.
 * Options after the body, as in drafts, are refused with the right order.
 */
export function checkBody<Body>(
  what: What,
  method: string,
  args: readonly unknown[],
): { readonly body: Body; readonly options: unknown } {
  const [first, second] = args;
  const [options, body] = args.length === 1 ? [undefined, first] : [first, second];
  if (typeof body === "function" && args.length <= 2) return { body: body as Body, options };
  const isSwapped = typeof first === "function" && args.length > 1;
  throw new TypeError(
    `${text(what)}: ${method} takes ${isSwapped ? "the options before the function: " : ""}(body) or (options, body)`,
  );
}

export function checkValue<T>(what: What, name: string, value: unknown, rule: Rule<T>): T {
  if (rule.fits(value)) return value as T;
  throw refuse(rule.type === typeof value ? RangeError : TypeError, what, name, rule.wanted, value);
}

export function checkName(name: unknown, what = "Cannot create a lock"): string {
  const isGood = typeof name === "string" && name !== "" && name.isWellFormed();
  if (isGood && Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  const text = checkText(what, "name", name);
  throw new RangeError(
    `${what}: name must be at most ${NAME_BYTES_MAX} bytes of UTF-8, received ${Buffer.byteLength(text)} bytes (${quote(text)})`,
  );
}

/** A string that is not empty. */
export function checkFilled(what: What, name: string, value: unknown): string {
  if (typeof value !== "string") throw refuse(TypeError, what, name, "a string", value);
  if (value === "") throw refuse(RangeError, what, name, "a non-empty string", value);
  return value;
}

/**
 * A string with a UTF-8 form. A lone surrogate has none: two different names would become one in
 * Redis.
 */
export function checkText(what: What, name: string, value: unknown): string {
  const text = checkFilled(what, name, value);
  if (!text.isWellFormed()) throw refuse(RangeError, what, name, "a well-formed string", text);
  return text;
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

export const text = (what: What): string =>
  typeof what === "string" ? what : `Cannot lock ${quoteAll(what)}`;

export function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "an array";
  if (isSignal(value)) return "an AbortSignal";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
