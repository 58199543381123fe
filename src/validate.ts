import { NAME_BYTES_MAX, TIMER_MAX } from "./defaults.ts";
import { quote } from "./errors.ts";

/** What begins every message: "Cannot lock 'order:42'". A function where it is put together only when it is needed. */
export type What = string | (() => string);

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

export function checkConnection(what: What, connection: unknown): void {
  if (connection !== undefined && connection !== "shared" && connection !== "own")
    throw refuse(TypeError, what, "connection", '"shared" or "own"', connection);
}

export function checkFlag(what: What, name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean")
    throw refuse(TypeError, what, name, "true or false", value);
}

export function checkCount(what: What, name: string, value: unknown, to: number): void {
  if (value === undefined || isWhole(value, 0, to)) return;
  const kind = typeof value === "number" ? RangeError : TypeError;
  throw refuse(kind, what, name, `a whole number from 0 to ${to}`, value);
}

export function checkSignal(what: What, signal: unknown): void {
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
