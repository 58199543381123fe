import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pTimeout from "p-timeout";

/** Processes of one program of this folder, which talk to their parent by messages. */
export class Processes<Message> {
  readonly #file: string;
  readonly #args: readonly string[];
  readonly #signal: AbortSignal;
  readonly #all = new Set<ChildProcess>();
  readonly #onMessage: (message: Message, from: ChildProcess) => void;
  /** Of one that nobody has killed. */
  #died: string | null = null;

  constructor(
    file: string,
    args: readonly string[],
    signal: AbortSignal,
    onMessage: (message: Message, from: ChildProcess) => void,
  ) {
    this.#file = fileURLToPath(new URL(`./${file}`, import.meta.url));
    this.#args = args;
    this.#signal = signal;
    this.#onMessage = onMessage;
  }

  start(): void {
    const child = fork(this.#file, this.#args);
    this.#all.add(child);
    child.on("message", (message) => this.#onMessage(message as Message, child));
    child.once("exit", (code, signal) => {
      this.#all.delete(child);
      if (!child.killed)
        this.#died = `a process of ${this.#file} ended early (${signal ?? `exit code ${code}`})`;
    });
  }

  tellAll(message: object): void {
    for (const child of this.#all) child.send(message);
  }

  /**
   * Waits until it is so; rejects after that many ms, or when a process dies by itself. It looks
   * every few ms: none of what is measured waits for it.
   */
  async until(what: string, isSo: () => boolean, within: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const so = new Promise<void>((resolve, reject) => {
      timer = setInterval(() => {
        if (this.#died !== null) reject(new Error(this.#died));
        else if (isSo()) resolve();
      }, 5);
    });
    const message = `${what}: not within ${within / 1_000} s`;
    await pTimeout(so, { milliseconds: within, message, signal: this.#signal }).finally(() =>
      clearInterval(timer),
    );
  }

  /** Kills all of them. */
  async end(): Promise<void> {
    const gone = [...this.#all].map((child) => once(child, "exit"));
    for (const child of this.#all) child.kill("SIGKILL");
    await Promise.all(gone);
  }
}
