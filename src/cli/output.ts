import { styleText } from "node:util";
import { Stderr } from "./stderr.ts";

type Style = Parameters<typeof styleText>[0];

/** Where the program writes: what it found to stdout, what it has to say to stderr. The command has both streams too. */
export class Output {
  readonly isJson: boolean;
  readonly #isQuiet: boolean;
  readonly #isVerbose: boolean;
  readonly #isPlain: boolean;
  readonly #stderr = new Stderr();

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

  /** False: from now on no write to stderr holds this program up, which has a command to look after. */
  set mayBlock(mayBlock: boolean) {
    this.#stderr.mayBlock = mayBlock;
  }

  /** Resolves when what was said is written, or after so many ms. */
  drained(most: number): Promise<void> {
    return this.#stderr.drained(most);
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
    this.#stderr.write(`holdfast: ${visible(line)}\n`);
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
    if (this.isJson) this.#stderr.write(`${toJson(value)}\n`);
  }

  /** In colour where stdout shows it. */
  paint(style: Style, text: string): string {
    if (this.#isPlain || !process.stdout.isTTY) return text;
    return styleText(style, text, { validateStream: false });
  }
}

/** JSON has no Infinity: no end is null there, as what is not known. What a terminal would act on is escaped in it as in strings. */
const toJson = (value: unknown): string => JSON.stringify(value).replace(CONTROLS, escaped);

// Line and paragraph separators, and marks that turn the direction of writing, too.
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const escaped = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * What other programs have written, such as names and labels, as it may go to a terminal: control characters would move its
 * cursor, or rewrite what stands there. Different texts stay different.
 */
export const visible = (text: string): string => text.replace(CONTROLS, escaped);
