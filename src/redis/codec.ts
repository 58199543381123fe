import { words } from "./codes.generated.ts";
import { FIRST_TOKEN, unexpected } from "./fields.ts";
import type { Form, Rows, Script } from "./script.ts";

// Arguments and replies of scripts by their names. The header of a script in lua/ is the only place
// that says how they are ordered, and what each field of a reply may be: tools/build/script-form.mjs
// makes a `Form` of it.

/** A script with its form. */
export interface Procedure extends Script {
  readonly form: Form;
}

/** The arguments of a script; for several locks a list of them. */
export type Args<P extends Procedure> = P["form"] extends { readonly each: true }
  ? readonly Named<P["form"]>[]
  : Named<P["form"]>;

type Named<F extends Form> = { readonly [N in F["args"][number]]: Argument } & {
  readonly [N in F extends { readonly more: readonly (infer M extends string)[] } ? M : never]?: Argument;
};

type Word = string | number;

/** Only the last one may be a list. "" and undefined say nothing. */
type Argument = Word | readonly Word[] | undefined;

/** What a script has answered: `is`, the code as a word, and the fields by their names. */
export type Answer<R> = R extends unknown
  ? { [C in keyof R]: C extends "" ? Fields<R[C]> : Coded<Split<C & string>, R[C]> }[keyof R]
  : never;

type Coded<Code, R> = Code extends string ? { readonly is: Code } & Fields<R> : never;

type Split<T extends string> = T extends `${infer First}|${infer Rest}` ? First | Split<Rest> : T;

type Fields<R> = {
  readonly [K in keyof R as K extends `...${infer N}`
    ? N
    : K extends `${string}?`
      ? never
      : K]: K extends `...${string}` ? readonly Answer<R[K]>[] : Value<R[K]>;
} & { readonly [K in keyof R as K extends `${infer N}?` ? N : never]?: Value<R[K]> };

/**
 * A field's value: µs and ms (Infinity: PTTL's -1, there is no TTL); a token of 16 digits; yes or no
 * as 1 or 0; a number in a range; a text; one of a few letters.
 */
type Value<T> = T extends "0|1"
  ? boolean
  : T extends "0..2"
    ? 0 | 1 | 2
    : T extends "text"
      ? string
      : T extends `${string}|${string}`
        ? Split<T>
        : T extends string
          ? number
          : T extends readonly [infer R]
            ? readonly Answer<R>[]
            : Answer<T>;

/**
 * The arguments in their order. Each costs the server 1 to 3 thousand instructions, so those at the
 * end that say nothing are left out.
 */
export function ordered<P extends Procedure>({ form }: P, given: Args<P>): Word[] {
  const all: Word[] = [];
  for (const named of (form.each ? given : [given]) as Readonly<Record<string, Argument>>[]) {
    for (const name of form.args) {
      const value = named[name] ?? "";
      if (Array.isArray(value)) all.push(...value);
      else all.push(value as Word);
    }
    const { more } = form;
    if (!more) continue;
    let last = more.length;
    while (last > 0 && saysNothing(named[more[last - 1] as string])) last--;
    for (let i = 0; i < last; i++) all.push((named[more[i] as string] as Word) ?? "");
  }
  return all;
}

const saysNothing = (value: Argument): boolean => value === undefined || value === "" || value === 0;

/**
 * Reads a whole reply. RACE: a connection that has lost a reply, by CLIENT REPLY or a fault of the
 * library, answers each command with the reply to the next one. So every field is checked, and a
 * reply that has more of them is refused.
 *
 * @throws TypeError for a reply that the script does not send
 */
export function read<R extends Rows>(rows: R, reply: unknown): Answer<R> {
  return new Reading(reply, Array.isArray(reply) ? reply : [reply]).whole(rows) as Answer<R>;
}

/** A list that is being read. */
class Reading {
  readonly #reply: unknown;
  readonly #fields: readonly unknown[];
  #at = 0;

  constructor(reply: unknown, fields: readonly unknown[]) {
    this.#reply = reply;
    this.#fields = fields;
  }

  whole(rows: Rows): object {
    const answer = this.#row(rows);
    if (!this.#isOver) throw unexpected(this.#reply);
    return answer;
  }

  get #isOver(): boolean {
    return this.#at >= this.#fields.length;
  }

  #all(rows: Rows): object[] {
    const all: object[] = [];
    while (!this.#isOver) all.push(this.#row(rows));
    return all;
  }

  #row(rows: Rows): object {
    const answer: Record<string, unknown> = {};
    let row = rows[""];
    if (!row) {
      const word = codeOf(this.#fields[this.#at++]);
      for (const codes in rows) if (`|${codes}|`.includes(`|${word}|`)) row = rows[codes];
      if (!row) throw unexpected(this.#reply);
      answer.is = word;
    }
    for (const name in row) {
      const type = row[name] as (typeof row)[string];
      if (name.startsWith("...")) answer[name.slice("...".length)] = this.#all(type as Rows);
      else if (!name.endsWith("?")) answer[name] = this.#field(type);
      else if (!this.#isOver) answer[name.slice(0, -1)] = this.#field(type);
    }
    return answer;
  }

  #field(type: string | Rows | readonly [Rows]): unknown {
    const field = this.#fields[this.#at++];
    const value = typeof type === "string" ? checked(field, type) : this.#list(field, type);
    if (value === undefined) throw unexpected(this.#reply);
    return value;
  }

  #list(field: unknown, type: Rows | readonly [Rows]): unknown {
    if (!Array.isArray(field)) return undefined;
    const inner = new Reading(this.#reply, field);
    return Array.isArray(type) ? inner.#all(type[0]) : inner.whole(type as Rows);
  }
}

/** Undefined: it is of another type. */
function checked(field: unknown, type: string): unknown {
  const range = RANGES[type];
  if (!range) {
    const text = textOf(field);
    return type === "text" || (text !== undefined && type.split("|").includes(text)) ? text : undefined;
  }
  const number = numberOf(field);
  if (!(number >= range[0] && number <= range[1] && Number.isInteger(number))) return undefined;
  if (type === "0|1") return number === 1;
  return type === "ms" && number === -1 ? Number.POSITIVE_INFINITY : number;
}

/** Bytes; or a string of a wrapped connection, unless `stringNumbers` has made it of a number. */
function textOf(field: unknown): string | undefined {
  if (Buffer.isBuffer(field)) return field.toString();
  return typeof field === "string" && !/^-?\d+$/.test(field) ? field : undefined;
}

/** "": it is none. With `stringNumbers` ioredis makes a string of a number; of a text it makes bytes. */
function codeOf(field: unknown): string {
  const code = typeof field === "string" ? Number(field) : field;
  return (typeof code === "number" && words[code]) || "";
}

/**
 * Scripts write large numbers as text, because clients' parsers round some; with `stringNumbers`
 * ioredis makes a text of each. NaN: it is none.
 */
function numberOf(field: unknown): number {
  if (typeof field === "number") return field;
  const text = Buffer.isBuffer(field) ? field.toString() : field;
  return typeof text === "string" && text !== "" ? Number(text) : Number.NaN;
}

const MOST = Number.MAX_SAFE_INTEGER;

/** The numbers of each type. -2 is the least that PTTL answers. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  µs: [0, MOST],
  ms: [-2, MOST],
  token: [FIRST_TOKEN, MOST],
  "0|1": [0, 1],
  "0": [0, 0],
  "0..": [0, MOST],
  "0..1": [0, 1],
  "0..2": [0, 2],
  "-1..": [-1, MOST],
};
