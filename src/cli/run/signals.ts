/** Those that end a program which does not ask for them, but for what only a fault of its own can send. */
const ALL = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM"] as const;

/** The signals that this program gets, from its beginning to its end: while it waits, while the command runs, and behind that. */
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
