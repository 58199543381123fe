import { constants } from "node:os";
import type { Output } from "../output.ts";
import type { Group } from "./group.ts";

/** Those that end a program which does not ask for them, but for what only a fault of its own can send. */
const ALL = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM"] as const;

/**
 * The signals that this program gets, from its beginning to its end: while it waits, while the
 * command runs, and behind that.
 */
export class Signals {
  /** The first one. */
  received: NodeJS.Signals | null = null;
  #handle: ((signal: NodeJS.Signals) => void) | null = null;
  readonly #listener = (signal: NodeJS.Signals): void => {
    this.received ??= signal;
    this.#handle?.(signal);
  };

  constructor() {
    for (const signal of ALL) process.on(signal, this.#listener);
  }

  /** Those that came so far were the command's. */
  forget(): void {
    this.received = null;
  }

  /** From now on they go there; null: they are only remembered. */
  to(handle: ((signal: NodeJS.Signals) => void) | null): void {
    this.#handle = handle;
  }

  /** From now on they do what they do to any program. */
  stop(): void {
    for (const signal of ALL) process.off(signal, this.#listener);
  }
}

/** As shells have it. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** A signal came before the command was started. */
export class Interrupted extends Error {}

/**
 * Has signals end the waiting from now on: that one aborts by `Interrupted`. The second one ends
 * the program: it is meant.
 */
export function endWaiting(signals: Signals, stopping = new AbortController()): AbortSignal {
  signals.to((signal) => {
    if (stopping.signal.aborted) process.exit(codeOf(signal));
    stopping.abort(new Interrupted());
  });
  return stopping.signal;
}

/**
 * SIGTSTP stops the command and then this program, which alone would only stop renewing; SIGCONT
 * lets both go on.
 */
export class Stopping {
  #group: Group | null = null;
  #resume: () => void = () => {};
  readonly #onStop = (): void => {
    this.#group?.signal("SIGSTOP");
    process.kill(process.pid, "SIGSTOP");
  };
  readonly #onContinue = (): void => this.#resume();

  /**
   * RACE: made before the command is started. Until then SIGTSTP stops this program by itself, and
   * would leave the command running.
   */
  constructor() {
    process.on("SIGTSTP", this.#onStop);
    process.on("SIGCONT", this.#onContinue);
  }

  /** The command runs. `resume`: has it go on, or not. */
  of(group: Group, resume: () => void): void {
    this.#group = group;
    this.#resume = resume;
  }

  end(): void {
    process.off("SIGTSTP", this.#onStop);
    process.off("SIGCONT", this.#onContinue);
  }
}

/** What nobody reads is waited for so many ms. */
const LAST_WORDS = 1_000;

/**
 * Where that signal has ended the command, or the waiting, this program dies by it too: a shell
 * ends its loop for Ctrl-C only when it sees that. The others write files behind a crash, or are no
 * key, so they only give the exit code. Returns where the system does not let it die, as process 1
 * of a container.
 */
export async function dieBy(
  signal: NodeJS.Signals | null,
  code: number,
  signals: Signals,
  output: Output,
): Promise<void> {
  if ((signal !== "SIGINT" && signal !== "SIGTERM") || code !== codeOf(signal)) return;
  await output.drained(LAST_WORDS);
  // RACE: not before. One that comes while the lock is given back would end this program with the
  // lock held, and its exit code with it.
  signals.stop();
  process.kill(process.pid, signal);
}
