// What compiled scripts call: the parts of Lua 5.1 that lua/ uses. nil is undefined, texts are bytes
// (one character each, up to 255), numbers are doubles. What is not here fails, and is never guessed.

/** Anything that a script computes with. */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction;
export type LuaFunction = (...values: never[]) => unknown;

/**
 * A script does what Lua does not allow, such as counting with a missing argument: Redis replies an
 * error. Any other error is of this run time, which lacks what the script asks for.
 */
export class LuaError extends Error {}

/** A list from 1, and other keys. */
export class LuaTable {
  readonly #list: LuaValue[] = [];
  #others: Map<LuaValue, LuaValue> | null = null;
  /** What it was made of, while nothing was set since, if nil is among it. */
  #made: readonly LuaValue[] | null = null;

  static of(list: readonly LuaValue[]): LuaTable {
    const table = new LuaTable();
    for (const [i, value] of list.entries()) table.set(i + 1, value);
    if (list.includes(undefined)) table.#made = list;
    return table;
  }

  static with(pairs: readonly (readonly [LuaValue, LuaValue])[]): LuaTable {
    const table = new LuaTable();
    for (const [key, value] of pairs) table.set(key, value);
    return table;
  }

  /** Of a table with gaps Lua names one of several ends: which one is known while it is as it was made. */
  get size(): number {
    if (this.#made) return endOf(this.#made);
    for (const key of this.#others?.keys() ?? [])
      if (typeof key === "number" && key >= 1 && Number.isInteger(key))
        throw new Error("the Lua run time has no length of a table with gaps");
    return this.#list.length;
  }

  get(key: LuaValue): LuaValue {
    if (typeof key === "number" && key >= 1 && key <= this.#list.length && Number.isInteger(key))
      return this.#list[key - 1];
    return this.#others?.get(key);
  }

  set(key: LuaValue, value: LuaValue): void {
    const list = this.#list;
    this.#made = null;
    const place = typeof key === "number" ? key - 1 : -1;
    if (key === undefined) throw new LuaError("table index is nil");
    if (place === list.length && value !== undefined) {
      list.push(value);
      for (let next = list.length + 1; this.#others?.has(next); next++) {
        list.push(this.#others.get(next));
        this.#others.delete(next);
      }
    } else if (place >= 0 && place < list.length && Number.isInteger(place)) {
      if (value !== undefined) list[place] = value;
      else this.#cut(place);
    } else if (value === undefined) this.#others?.delete(key);
    else {
      this.#others ??= new Map();
      this.#others.set(key, value);
    }
  }

  /** The list ends before this place; what comes after it has other keys. */
  #cut(place: number): void {
    const rest = this.#list.splice(place).slice(1);
    for (const [i, value] of rest.entries()) this.set(place + 2 + i, value);
  }

  /** The list, without a copy. */
  get list(): readonly LuaValue[] {
    return this.#list;
  }

  insert(place: number, value: LuaValue): void {
    if (place < 1 || place > this.size + 1) throw new Error(`the Lua run time has no insert at ${place}`);
    this.#made = null;
    this.#list.splice(place - 1, 0, value);
  }

  remove(place: number): LuaValue {
    this.#made = null;
    return place >= 1 && place <= this.size ? this.#list.splice(place - 1, 1)[0] : undefined;
  }
}

/** As luaH_getn: the last place, or one with nil after it, which is searched for by halves. */
function endOf(list: readonly LuaValue[]): number {
  let [low, high] = [0, list.length];
  if (list[high - 1] !== undefined) return high;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle - 1] === undefined) high = middle;
    else low = middle;
  }
  return low;
}

const typeOf = (value: unknown): string => {
  if (value === undefined) return "nil";
  return value instanceof LuaTable ? "table" : typeof value;
};

// ---- values

/**
 * A number with so many digits after the point. C rounds a number that lies just between two others
 * to the even one, and JavaScript away from zero.
 */
function rounded(show: (digits: number) => string, digits: number): string {
  const exact = new RegExp(`^(-?\\d+\\.\\d{${digits}})50*(e.*)?$`).exec(show(100));
  const [, kept = "", power = ""] = exact ?? [];
  return /[02468]\.?$/.test(kept) ? kept.replace(/\.$/, "") + power : show(digits);
}

/** As printf's %.14g. */
function general(n: number): string {
  if (Number.isInteger(n) && Math.abs(n) < 1e14) return Object.is(n, -0) ? "-0" : String(n);
  if (!Number.isFinite(n)) return Number.isNaN(n) ? "nan" : n > 0 ? "inf" : "-inf";
  const [digits = "", exponent = "0"] = rounded((count) => n.toExponential(count), 13).split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 14)
    return rounded((count) => n.toFixed(count), Math.max(13 - power, 0))
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
  const sign = power < 0 ? "-" : "+";
  return `${digits.replace(/\.?0+$/, "")}e${sign}${String(Math.abs(power)).padStart(2, "0")}`;
}

const NUMBER = /^\s*[+-]?(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*$/;
/** As C's strtod reads them. */
const NO_NUMBER = /^\s*([+-]?)(?:(inf|infinity)|nan)\s*$/i;

export function tonumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return undefined;
  if (NUMBER.test(value)) return Number(value);
  const [odd, sign, infinite] = NO_NUMBER.exec(value) ?? [];
  if (odd === undefined) return undefined;
  return infinite ? Number(`${sign}Infinity`) : Number.NaN;
}

/** An operand of arithmetic. */
export function number(value: unknown): number {
  if (typeof value === "number") return value;
  const read = tonumber(value);
  if (read === undefined) throw new LuaError(`attempt to perform arithmetic on a ${typeOf(value)} value`);
  return read;
}

/** An operand of a concatenation. */
export function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return general(value);
  throw new LuaError(`attempt to concatenate a ${typeOf(value)} value`);
}

export const tostring = (value: unknown): string => {
  if (value === undefined) return "nil";
  return typeof value === "boolean" ? String(value) : text(value);
};

export const type = (value: unknown): string => typeOf(value);

export const isTrue = (value: unknown): boolean => value !== undefined && value !== false;

export function size(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (value instanceof LuaTable) return value.size;
  throw new LuaError(`attempt to get length of a ${typeOf(value)} value`);
}

function comparable(a: unknown, b: unknown): void {
  if (typeof a === typeof b && (typeof a === "number" || typeof a === "string")) return;
  const [one, other] = [typeOf(a), typeOf(b)];
  throw new LuaError(`attempt to compare ${one === other ? `two ${one} values` : `${one} with ${other}`}`);
}

type Ordered = number | string;
export function lt(a: Ordered, b: Ordered): boolean {
  comparable(a, b);
  return a < b;
}
export function le(a: Ordered, b: Ordered): boolean {
  comparable(a, b);
  return a <= b;
}
export const gt = (a: Ordered, b: Ordered): boolean => lt(b, a);
export const ge = (a: Ordered, b: Ordered): boolean => le(b, a);

/** Lua's remainder has the sign of the divisor. */
export const modulo = (a: number, b: number): number => a - Math.floor(a / b) * b;

/** What a script indexes. A text has no fields but the functions of its library. */
export function indexed(value: unknown): LuaTable {
  if (value instanceof LuaTable) return value;
  if (typeof value === "string") return EMPTY;
  throw new LuaError(`attempt to index a ${typeOf(value)} value`);
}
const EMPTY = new LuaTable();

/** The first or last number of a loop. */
export function bound(value: unknown, what: "initial value" | "limit"): number {
  const read = tonumber(value);
  if (read === undefined) throw new LuaError(`'for' ${what} must be a number`);
  return read;
}

// ---- arguments of Lua's own functions

function wrong(place: number, name: string, wanted: string, value: unknown): never {
  const what = value === undefined ? "nil" : typeOf(value);
  throw new LuaError(`bad argument #${place} to '${name}' (${wanted} expected, got ${what})`);
}

const textOf = (value: unknown, name: string, place = 1): string =>
  typeof value === "string" || typeof value === "number" ? text(value) : wrong(place, name, "string", value);

const numberOf = (value: unknown, name: string, place = 1): number =>
  tonumber(value) ?? wrong(place, name, "number", value);

const tableOf = (value: unknown, name: string): LuaTable =>
  value instanceof LuaTable ? value : wrong(1, name, "table", value);

export function unpack(list: unknown, from = 1, to?: number): LuaValue[] {
  const table = tableOf(list, "unpack");
  return Array.from({ length: Math.max((to ?? table.size) - from + 1, 0) }, (_, i) => table.get(from + i));
}

export function* ipairs(list: unknown): Generator<[number, LuaValue]> {
  const table = tableOf(list, "ipairs");
  for (let i = 1; table.get(i) !== undefined; i++) yield [i, table.get(i)];
}

// ---- patterns

const CLASSES: Readonly<Record<string, string>> = {
  d: "0-9",
  l: "a-z",
  u: "A-Z",
  a: "A-Za-z",
  w: "A-Za-z0-9",
  s: " \\t\\n\\v\\f\\r",
  x: "0-9A-Fa-f",
};
const patterns = new Map<string, RegExp>();
/** The numbers of the captures of a pattern that give a place: `()`. */
const places = new WeakMap<RegExp, ReadonlySet<number>>();

/** One item of a pattern, without its repetition; and how long it is. */
const ITEM = /%(.)|\[(\^?)((?:%.|[^\]%])+)\]|([^%[\]])/y;

function regExpOf(pattern: string): RegExp {
  const known = patterns.get(pattern);
  if (known) return known;
  const isAnchored = pattern.startsWith("^");
  let source = "";
  let groups = 0;
  const ofPlaces = new Set<number>();
  for (let at = isAnchored ? 1 : 0; at < pattern.length; ) {
    const char = pattern.charAt(at);
    if (char === "(" || char === ")" || (char === "$" && at === pattern.length - 1)) {
      if (char === "(") groups++;
      if (pattern.startsWith("()", at)) ofPlaces.add(groups);
      source += char;
      at++;
      continue;
    }
    ITEM.lastIndex = at;
    const item = ITEM.exec(pattern);
    if (!item) throw new Error(`the Lua run time has no pattern: ${pattern}`);
    at += item[0].length;
    const repeat = pattern.charAt(at);
    const isRepeated = "*+?-".includes(repeat) && repeat !== "";
    if (isRepeated) at++;
    source += `${itemOf(item, pattern)}${isRepeated ? (repeat === "-" ? "*?" : repeat) : ""}`;
  }
  const made = new RegExp(source, `${isAnchored ? "y" : "g"}${groups > 0 ? "d" : ""}`);
  patterns.set(pattern, made);
  places.set(made, ofPlaces);
  return made;
}

const escaped = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

function itemOf([, percent, not, set, plain]: RegExpExecArray, pattern: string): string {
  if (plain !== undefined) return plain === "." ? "[^]" : escaped(plain);
  if (percent !== undefined) {
    const members = classOf(percent, pattern);
    if (members === null) return escaped(percent);
    return `[${percent === percent.toLowerCase() ? "" : "^"}${members}]`;
  }
  const members = (set ?? "").replace(/%(.)|(.)-(.)|(.)/g, (_, escapedChar, low, high, char) => {
    if (low !== undefined) return `${escaped(low)}-${escaped(high)}`;
    if (char !== undefined) return escaped(char);
    const found = classOf(escapedChar, pattern);
    if (found !== null && escapedChar !== escapedChar.toLowerCase())
      throw new Error(`the Lua run time has no pattern: ${pattern}`);
    return found ?? escaped(escapedChar);
  });
  return `[${not}${members}]`;
}

/** The members of a class such as %d; null: the character itself. */
function classOf(char: string, pattern: string): string | null {
  if (!/[A-Za-z0-9]/.test(char)) return null;
  const members = CLASSES[char.toLowerCase()];
  if (members === undefined) throw new Error(`the Lua run time has no pattern: ${pattern}`);
  return members;
}

interface Match {
  /** From 0; and the place after its end. */
  readonly from: number;
  readonly to: number;
  readonly captures: readonly (string | number)[];
}

function found(subject: string, pattern: string, from: number): Match | null {
  const regExp = regExpOf(pattern);
  regExp.lastIndex = from;
  const match = regExp.exec(subject);
  if (!match) return null;
  const captures = match.slice(1).map((text, i) => {
    if (!places.get(regExp)?.has(i + 1)) return text;
    return (match.indices?.[i + 1]?.[0] ?? 0) + 1;
  });
  return { from: match.index, to: match.index + match[0].length, captures };
}

/** A pattern without captures captures all that it matches. */
const capturesOf = (subject: string, { from, to, captures }: Match): readonly (string | number)[] =>
  captures.length === 0 ? [subject.slice(from, to)] : captures;

/** A place as Lua counts it, from 1; negative: from the end. */
const placeIn = (subject: string, place: number): number =>
  place >= 0 ? place : Math.max(subject.length + place + 1, 0);

/** Where a search from this place starts, from 0. Lua 5.1 starts one past the end at the end. */
const startIn = (subject: string, place: number): number =>
  Math.min(Math.max(placeIn(subject, place) - 1, 0), subject.length);

export function* gmatch(subject: unknown, pattern: string): Generator<readonly (string | number)[]> {
  const all = textOf(subject, "gmatch");
  if (pattern.startsWith("^")) throw new Error("the Lua run time has no gmatch with an anchor");
  for (let at = 0; ; ) {
    const match = found(all, pattern, at);
    if (!match) return;
    yield capturesOf(all, match);
    at = Math.max(match.to, match.from + 1);
  }
}

// ---- libraries

export const string = {
  sub(subject: unknown, from: unknown, to: unknown = -1): string {
    const all = textOf(subject, "sub");
    const first = Math.max(placeIn(all, numberOf(from, "sub", 2)), 1);
    const last = placeIn(all, numberOf(to, "sub", 3));
    return first <= last ? all.slice(first - 1, last) : "";
  },

  /** Of one place only. */
  byte(subject: unknown, place = 1): number | undefined {
    const all = textOf(subject, "byte");
    const code = all.charCodeAt(placeIn(all, place) - 1);
    return Number.isNaN(code) ? undefined : code;
  },

  lower: (subject: unknown): string =>
    textOf(subject, "lower").replace(/[A-Z]+/g, (letters) => letters.toLowerCase()),

  match(subject: unknown, pattern: string, from = 1): readonly (string | number)[] {
    const all = textOf(subject, "match");
    const match = found(all, pattern, startIn(all, from));
    return match ? capturesOf(all, match) : [];
  },

  find(subject: unknown, pattern: string, from = 1, isPlain?: boolean): (number | string)[] {
    const all = textOf(subject, "find");
    const start = startIn(all, from);
    if (isPlain) {
      const at = all.indexOf(pattern, start);
      return at < 0 ? [] : [at + 1, at + pattern.length];
    }
    const match = found(all, pattern, start);
    if (!match) return [];
    return [match.from + 1, match.to, ...match.captures];
  },

  /** %d, %f and %s, with a width, leading zeros and digits after the point. */
  format(form: string, ...values: LuaValue[]): string {
    let next = 0;
    return form.replace(/%(?:%|(0?)(\d*)(?:\.(\d+))?(.))/g, (all, zero, width, digits, kind) => {
      if (kind === undefined) return "%";
      const place = next + 2;
      const value = values[next++];
      if (kind === "s") return textOf(value, "format", place).padStart(Number(width));
      const n = numberOf(value, "format", place);
      const shown = shownBy(all, kind, n, digits);
      if (!zero || !Number.isFinite(n)) return shown.padStart(Number(width));
      const sign = shown.startsWith("-") ? "-" : "";
      return sign + shown.slice(sign.length).padStart(Number(width) - sign.length, "0");
    });
  },
};

function shownBy(form: string, kind: string, n: number, digits: string | undefined): string {
  // As C converts a number beyond 64 bits on x86 and ARM's Redis builds print it.
  if (kind === "d") return Math.abs(n) < 2 ** 63 ? BigInt(Math.trunc(n)).toString() : String(-(2n ** 63n));
  if (kind !== "f") throw new Error(`the Lua run time has no format ${form}`);
  if (!Number.isFinite(n)) return general(n);
  const count = digits === undefined ? 6 : Number(digits);
  if (Math.abs(n) < 1e21)
    return Number.isInteger(n) ? n.toFixed(count) : rounded((to) => n.toFixed(to), count);
  return `${BigInt(n)}${count > 0 ? `.${"0".repeat(count)}` : ""}`;
}

const numbersOf = (values: readonly unknown[], name: string): number[] => [
  numberOf(values[0], name),
  ...values.slice(1).map((value, i) => numberOf(value, name, i + 2)),
];

export const math = {
  // By comparisons, so NaN counts only if it is the first.
  max: (...values: unknown[]): number => numbersOf(values, "max").reduce((a, b) => (lt(a, b) ? b : a)),
  min: (...values: unknown[]): number => numbersOf(values, "min").reduce((a, b) => (lt(b, a) ? b : a)),
  ceil: (value: unknown): number => Math.ceil(numberOf(value, "ceil")),
  floor: (value: unknown): number => Math.floor(numberOf(value, "floor")),
  huge: Number.POSITIVE_INFINITY,
};

export const table = {
  insert(into: unknown, ...[place, value]: LuaValue[]): void {
    const list = tableOf(into, "insert");
    if (value === undefined) list.set(list.size + 1, place);
    else list.insert(numberOf(place, "insert", 2), value);
  },

  remove(from: unknown, place?: number): LuaValue {
    const list = tableOf(from, "remove");
    return list.remove(place ?? list.size);
  },

  concat(list: unknown, between = ""): string {
    const items = unpack(tableOf(list, "concat"));
    const wrongAt = items.findIndex((item) => typeof item !== "string" && typeof item !== "number");
    if (wrongAt < 0) return items.map(text).join(between);
    const what = typeOf(items[wrongAt]);
    throw new LuaError(`invalid value (${what}) at index ${wrongAt + 1} in table for 'concat'`);
  },
};
