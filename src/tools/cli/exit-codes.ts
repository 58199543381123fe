import { LockError } from "../../index.ts";

/**
 * The program's exit codes, unless it exits with the command's own. 128 + n: signal n ended the
 * command, or the wait.
 */
export const EXIT = {
  ok: 0,
  /** The command line makes no sense. EX_USAGE of sysexits, as flock(1). */
  usage: 64,
  /** Redis does not answer, or refuses. EX_UNAVAILABLE. */
  unavailable: 69,
  /**
   * Another process holds the lock. EX_TEMPFAIL, as in flock(1)'s manual; `--conflict-exit-code`
   * changes it.
   */
  busy: 75,
  /**
   * Lost while the command ran: the first number after those of sysexits, so no other program uses
   * it.
   */
  lost: 79,
  /** `--max-hold` was over, as timeout(1). */
  tooLong: 124,
  /** The command cannot be run, or does not exist, as env(1). */
  cannotRun: 126,
  notFound: 127,
} as const;

/** Ends the program: `message` goes to stderr, `code` to the caller. */
export class ExitError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** The command line makes no sense. */
export class UsageError extends ExitError {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}

/** What an error means to the caller of the program. */
export function judge(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof ExitError) return error;
  if (error instanceof LockError) {
    const isWrong = error.code === "PERMITS_DIFFER" || error.code === "PERMITS_UNKNOWN";
    return { code: isWrong ? EXIT.usage : EXIT.unavailable, message: error.message };
  }
  const message = error instanceof Error ? error.message : String(error);
  // An error of the library: a name that is too long, a label that is too short …
  const isUsage = error instanceof RangeError || error instanceof TypeError;
  return { code: isUsage ? EXIT.usage : EXIT.unavailable, message };
}

/** The outcome in `--json`. */
export function failureOf(code: number): "usage" | "unavailable" | "not-run" {
  if (code === EXIT.usage) return "usage";
  return code === EXIT.unavailable ? "unavailable" : "not-run";
}
