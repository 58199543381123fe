import { codeAt } from "../util/code-at.ts";

/**
 * Reads the words of a message in order. Anyone may send messages, so it throws nothing: after a
 * missing or malformed word `isWhole` is false, and the values read mean nothing. `rest` reads the
 * last word, which may contain spaces.
 */
export class Words {
  isWhole = true;
  readonly #text: string;
  #at: number;

  /** `at`: where the first word begins. */
  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  word(): string {
    const at = this.#at;
    const end = this.#text.indexOf(" ", at);
    this.#at = end + 1;
    if (end > at) return this.#text.slice(at, end);
    this.isWhole = false;
    return "";
  }

  /** A whole number from `least` to 2^53-1, in digits: scripts write no other numbers. */
  count(least = 1): number {
    const text = this.#text;
    let number = 0;
    for (let at = this.#at; ; at++) {
      const digit = codeAt(text, at) - ZERO;
      // `codeAt` gives NaN past the end of the text.
      if (!(digit >= 0 && digit <= 9)) {
        if (digit !== SPACE - ZERO || !(number >= least && number <= Number.MAX_SAFE_INTEGER))
          this.isWhole = false;
        this.#at = at + 1;
        return number;
      }
      number = number * 10 + digit;
    }
  }

  flag(): boolean {
    const word = this.word();
    if (word !== "0" && word !== "1") this.isWhole = false;
    return word === "1";
  }

  rest(): string {
    if (this.#at >= this.#text.length) this.isWhole = false;
    return this.#text.slice(this.#at);
  }
}

const ZERO = 48;
const SPACE = 32;
