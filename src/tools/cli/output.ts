import { styleText } from "node:util";
import { harmless } from "../../util/visible.ts";
import { Stderr } from "./stderr.ts";

/** A part of a line, and its style if stdout shows colours. */
export interface Painted {
  readonly style: Parameters<typeof styleText>[0];
  readonly text: string;
}

/**
 * Where the program writes: its results to stdout, its messages to stderr. The command has both
 * streams too. Nothing written here acts on a terminal, whatever a line contains; `visible()` makes
 * names look different.
 */
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

  /** False: from now on no write to stderr blocks this program, which must watch its command. */
  set mayBlock(mayBlock: boolean) {
    this.#stderr.mayBlock = mayBlock;
  }

  /** Resolves when all messages are written, or after `most` ms. */
  drained(most: number): Promise<void> {
    return this.#stderr.drained(most);
  }

  /** To stderr, in one line; not with `--quiet`. */
  say(line: string): void {
    if (!this.#isQuiet) this.fail(line);
  }

  /** The same, only with `--verbose`. */
  detail(line: string): void {
    if (this.#isVerbose) this.fail(line);
  }

  /** To stderr, always. */
  fail(line: string): void {
    this.#stderr.write(`holdfast: ${harmless(line)}\n`);
  }

  /** One line to stdout. */
  print(...parts: readonly (string | Painted)[]): void {
    process.stdout.write(`${this.line(...parts)}\n`);
  }

  /** The same for programs, with tabs between the cells. */
  printTabbed(cells: readonly string[]): void {
    process.stdout.write(`${cells.map(harmless).join("\t")}\n`);
  }

  /** One line of JSON to stdout. */
  printJson(value: unknown): void {
    this.print(toJson(value));
  }

  /** One line of JSON to stderr, because the command writes to stdout. */
  reportJson(value: unknown): void {
    if (this.isJson) this.#stderr.write(`${toJson(value)}\n`);
  }

  /** A line that is safe for a terminal: escaped first, then coloured. */
  line(...parts: readonly (string | Painted)[]): string {
    const isPlain = this.#isPlain || !process.stdout.isTTY;
    return parts
      .map((part) => {
        if (typeof part === "string") return harmless(part);
        const text = harmless(part.text);
        return isPlain ? text : styleText(part.style, text, { validateStream: false });
      })
      .join("");
  }
}

/** JSON has no Infinity: no end is null there, like an unknown value. */
const toJson = (value: unknown): string => harmless(JSON.stringify(value));
