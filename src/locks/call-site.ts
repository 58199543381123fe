import { harmless } from "../util/visible.ts";

/** The line of the application that called a method. Its text is made when it is read. */
export class CallSite {
  readonly stack = "";

  /** `below`: the method. */
  constructor(below: (...args: never[]) => unknown) {
    const limit = Error.stackTraceLimit;
    // An application may have frozen this property.
    const isSet = Reflect.set(Error, "stackTraceLimit", 1);
    Error.captureStackTrace(this, below);
    if (isSet) Reflect.set(Error, "stackTraceLimit", limit);
  }

  toString(): string {
    try {
      return harmless(/^\s*at (.+)$/m.exec(String(this.stack))?.[1] ?? UNKNOWN);
    } catch {
      // The application's own `Error.prepareStackTrace` has thrown.
      return UNKNOWN;
    }
  }
}

const UNKNOWN = "an unknown line";
