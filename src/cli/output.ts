import { stripVTControlCharacters, styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Where the program writes: what it found to stdout, what it has to say to stderr. The command has both streams too. */
export class Output {
  readonly isJson: boolean;
  readonly #isQuiet: boolean;
  readonly #isVerbose: boolean;
  readonly #isPlain: boolean;

  constructor(given: {
    json?: true | undefined;
    quiet?: true | undefined;
    verbose?: true | undefined;
    "no-color"?: true | undefined;
  }) {
    this.isJson = given.json === true;
    this.#isQuiet = given.quiet === true;
    this.#isVerbose = given.verbose === true;
    const { NO_COLOR = "", TERM = "" } = process.env;
    this.#isPlain = given["no-color"] === true || NO_COLOR !== "" || TERM === "dumb";
  }

  /** To stderr, in one line; not where the caller wants quiet. */
  say(line: string): void {
    if (!this.#isQuiet) this.fail(line);
  }

  /** The same, where the caller wants to know more. */
  detail(line: string): void {
    if (this.#isVerbose) this.fail(line);
  }

  /** To stderr, in any case. */
  fail(line: string): void {
    process.stderr.write(`holdfast: ${visible(line)}\n`);
  }

  /** To stdout. */
  print(line: string): void {
    process.stdout.write(`${line}\n`);
  }

  /** One line of JSON to stdout. */
  printJson(value: unknown): void {
    this.print(toJson(value));
  }

  /** One line of JSON to stderr, beside what a command writes to stdout. */
  reportJson(value: unknown): void {
    if (this.isJson) process.stderr.write(`${toJson(value)}\n`);
  }

  /** In colour where stdout shows it. */
  paint(style: Style, text: string): string {
    if (this.#isPlain || !process.stdout.isTTY) return text;
    return styleText(style, text, { validateStream: false });
  }
}

/** JSON has no Infinity: no end is null there, as what is not known. */
const toJson = (value: unknown): string => JSON.stringify(value);

/**
 * What other programs have written, such as names and labels, as it may go to a terminal: control characters would move its
 * cursor, or rewrite what stands there.
 */
export function visible(text: string): string {
  return stripVTControlCharacters(text).replace(CONTROLS, (one) =>
    JSON.stringify(one)
      .slice(1, -1)
      .replace(/^[^\\]$/, "�"),
  );
}

// Line and paragraph separators, and marks that turn the direction of writing, too.
const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
