import { LockError } from "../index.ts";
import { EXIT, ExitError } from "./exit-codes.ts";

/** What an error means to the caller of the program. */
export function judge(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof ExitError) return error;
  if (error instanceof LockError) {
    const isWrong = error.code === "PERMITS_DIFFER" || error.code === "PERMITS_UNKNOWN";
    return { code: isWrong ? EXIT.usage : EXIT.unavailable, message: error.message };
  }
  const message = error instanceof Error ? error.message : String(error);
  // Of the library: a name that is too long, a label that is too short …
  const isUsage = error instanceof RangeError || error instanceof TypeError;
  return { code: isUsage ? EXIT.usage : EXIT.unavailable, message };
}

/** As an outcome of `--json`. */
export function failureOf(code: number): "usage" | "unavailable" | "not-run" {
  if (code === EXIT.usage) return "usage";
  return code === EXIT.unavailable ? "unavailable" : "not-run";
}
