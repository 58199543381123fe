import { stackOf } from "../util/stack.ts";
import { harmless } from "../util/visible.ts";

/** The line of the application that called a method. Its text is made when it is read. */
export class CallSite {
  readonly #taken: { readonly stack: unknown };

  /** `below`: the method. */
  constructor(below: (...args: never[]) => unknown) {
    this.#taken = stackOf(below, 1);
  }

  toString(): string {
    try {
      return harmless(/^\s*at (.+)$/m.exec(String(this.#taken.stack))?.[1] ?? UNKNOWN);
    } catch {
      return UNKNOWN;
    }
  }
}

const UNKNOWN = "an unknown line";
