import { constants } from "node:os";
import type { Output } from "../output.ts";
import type { Group } from "./group.ts";

/** Signals that end a program by default, except those that only its own faults cause. */
const ALL = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM"] as const;

/**
 * The signals that this program receives, from beginning to end: while it waits, while the command
 * runs, and after that.
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

  /** The signals so far were for the command. */
  forget(): void {
    this.received = null;
  }

  /** Where signals go from now on; null: they are only recorded. */
  to(handle: ((signal: NodeJS.Signals) => void) | null): void {
    this.#handle = handle;
  }

  /** From now on they have their default effect. */
  stop(): void {
    for (const signal of ALL) process.off(signal, this.#listener);
  }
}

/** As in shells. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** A signal came before the command was started. */
export class Interrupted extends Error {}

/**
 * From now on a signal ends the wait: the returned signal aborts with `Interrupted`. A second one
 * ends the program, because it is deliberate.
 */
export function endWaiting(signals: Signals, stopping = new AbortController()): AbortSignal {
  signals.to((signal) => {
    if (stopping.signal.aborted) process.exit(codeOf(signal));
    stopping.abort(new Interrupted());
  });
  return stopping.signal;
}

/**
 * SIGTSTP stops the command and then this program; stopping only this program would only stop the
 * renewals. SIGCONT continues both.
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
   * RACE: create it before the command is started. Until then SIGTSTP stops only this program, and
   * would leave the command running.
   */
  constructor() {
    process.on("SIGTSTP", this.#onStop);
    process.on("SIGCONT", this.#onContinue);
  }

  /** The command runs. `resume`: decides whether it continues. */
  of(group: Group, resume: () => void): void {
    this.#group = group;
    this.#resume = resume;
  }

  end(): void {
    process.off("SIGTSTP", this.#onStop);
    process.off("SIGCONT", this.#onContinue);
  }
}

/** How many ms to wait for a reader of stderr. */
const LAST_WORDS = 1_000;

/**
 * If that signal ended the command, or the wait, this program dies by it too: a shell ends its loop
 * on Ctrl-C only if it sees that. Other signals write core files, or have no key, so they only set
 * the exit code. Returns if the system does not let it die, as process 1 of a container.
 */
export async function dieBy(
  signal: NodeJS.Signals | null,
  code: number,
  signals: Signals,
  output: Output,
): Promise<void> {
  if ((signal !== "SIGINT" && signal !== "SIGTERM") || code !== codeOf(signal)) return;
  await output.drained(LAST_WORDS);
  // RACE: not earlier. A signal that comes while the lock is given back would end this program with
  // the lock held, and without its exit code.
  signals.stop();
  process.kill(process.pid, signal);
}
