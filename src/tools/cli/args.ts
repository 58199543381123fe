import { parseArgs } from "node:util";
import { quoteWhole } from "../../util/quote.ts";
import { readVisible } from "../../util/visible.ts";
import { didYouMean } from "./closest.ts";
import { readDuration } from "./durations.ts";
import { UsageError } from "./exit-codes.ts";

/** One flag of the command line. */
export interface Flag<T> {
  readonly short: string | null;
  /** What the help shows for its value; null: it takes none. */
  readonly shows: string | null;
  readonly help: string;
  /** @throws UsageError */
  readonly read: (text: string, flag: string) => T;
}

export type Flags = Readonly<Record<string, Flag<unknown>>>;

/** The given values; undefined: not given. */
type Values<S extends Flags> = {
  readonly [K in keyof S]: S[K] extends Flag<infer T> ? T | undefined : never;
};

export interface Parsed<S extends Flags> {
  readonly values: Values<S>;
  readonly positionals: readonly string[];
  /** The arguments after "--"; null: there is none. */
  readonly rest: readonly string[] | null;
}

// ---- Kinds of flags

export const flag = (short: string | null, help: string): Flag<true> => {
  return { short, shows: null, help, read: () => true };
};

export const text = (short: string | null, shows: string, help: string): Flag<string> => {
  return { short, shows, help, read: (text) => text };
};

/** ms. */
export const duration = (short: string | null, help: string): Flag<number> => {
  return { short, shows: "<time>", help, read: readDuration };
};

export function count(short: string | null, help: string, least: number, most: number): Flag<number> {
  const read = (text: string, flag: string) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new UsageError(`${flag} takes a whole number from ${least} to ${most}, not ${quoteWhole(text)}.`);
  };
  return { short, shows: "<n>", help, read };
}

export function choice<const T extends string>(help: string, ...allowed: T[]): Flag<T> {
  const read = (text: string, flag: string) => {
    const found = allowed.find((one) => one === text);
    if (found !== undefined) return found;
    throw new UsageError(
      `${flag} takes ${inWords(allowed)}, not ${quoteWhole(text)}${didYouMean(text, allowed)}`,
    );
  };
  return { short: null, shows: `<${allowed.join("|")}>`, help, read };
}

/** "a", "a or b", "a, b or c". */
export const inWords = (words: readonly string[]): string => words.join(", ").replace(/, (?!.*, )/, " or ");

// ---- Parsing

/** `help`: the command line that lists the flags. @throws UsageError */
export function parse<S extends Flags>(flags: S, argv: readonly string[], help: string): Parsed<S> {
  const end = argv.indexOf("--");
  const own = end < 0 ? argv : argv.slice(0, end);
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { short, shows }]) => {
      const type = shows === null ? ("boolean" as const) : ("string" as const);
      return [name, short === null ? { type } : { type, short }];
    }),
  );
  const { values, positionals } = given(Object.keys(flags), help, () =>
    parseArgs({ args: [...own], options, allowPositionals: true, strict: true }),
  );
  const read = Object.entries(flags).map(([name, one]) => {
    const value = values[name];
    return [name, value === undefined ? undefined : one.read(String(value), `--${name}`)];
  });
  const rest = end < 0 ? null : argv.slice(end + 1);
  return { values: Object.fromEntries(read) as Values<S>, positionals, rest };
}

/** Its errors in one sentence, without the hints of Node.js, which do not fit here. `known`: the flags. */
function given<T>(known: readonly string[], help: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    const { message } = error as Error;
    const [, unknown] = /^Unknown option '(-.*)'\. To specify/s.exec(message) ?? [];
    if (unknown !== undefined) throw new UsageError(unknownOption(unknown, known, help));
    const [, option, what] =
      /^Option '(.*?)(?: <value>)?' (argument missing|argument is ambiguous|does not take)/.exec(message) ??
      [];
    if (option === undefined) throw new UsageError(`${message.replace(/\.$/, "")}.`);
    if (what === "does not take") throw new UsageError(`Option '${option}' takes no value.`);
    const why = what === "argument missing" ? "" : ": what comes after it begins with a dash";
    throw new UsageError(`Option '${option}' needs a value${why}.`);
  }
}

/** `known`: the long names of the options, without their dashes. */
export const unknownOption = (option: string, known: readonly string[], help: string): string =>
  `Unknown option ${quoteWhole(option)}${didYouMean(
    option,
    option.startsWith("--") ? known.map((name) => `--${name}`) : [],
    help,
  )}`;

export const ESCAPED = flag(
  "e",
  "the name is written as it is printed, with escapes such as \\\\ and \\u001b",
);

/**
 * The one argument of a command, such as a name; undefined: there is none. One that begins with a
 * dash comes after "--". @throws UsageError with that sentence if there are more.
 */
export function onlyOf(
  positionals: readonly string[],
  rest: readonly string[] | null,
  sentence: string,
): string | undefined {
  const [one, further] = [...positionals, ...(rest ?? [])];
  if (further !== undefined) throw new UsageError(sentence);
  return one;
}

/** The one name that a command takes. @throws UsageError with that sentence unless there is one. */
export function nameOf(
  positionals: readonly string[],
  rest: readonly string[] | null,
  { escaped }: Escaped,
  sentence: string,
): string {
  const name = onlyOf(positionals, rest, sentence);
  if (name === undefined) throw new UsageError(sentence);
  const read = escaped ? readVisible(name) : name;
  if (read !== null) return read;
  throw new UsageError(
    `--escaped takes a name as it is printed, in which a backslash is \\\\, not ${quoteWhole(name)}.`,
  );
}

/** What to add to "no process holds it": the name may have been copied in its printed form. */
export const escapedHint = (name: string, { escaped }: Escaped): string =>
  !escaped && name.includes("\\") && readVisible(name) !== null
    ? " A name copied from a listing needs --escaped."
    : "";

interface Escaped {
  readonly escaped: true | undefined;
}
