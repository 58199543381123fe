import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { endWithProcess } from "../../tools/redis/reaper.ts";
import type { ActorMethods, ActorOptions, Answer } from "./actor-process.ts";
import { compiled } from "./compiled.ts";

type Returned<M extends keyof ActorMethods> = Awaited<ReturnType<ActorMethods[M]>>;

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/**
 * A separate process with a Redis connection and a lock client, which a test can really stop and
 * kill.
 *
 * @example
 * const actor = await Actor.start({ url }); // or { address }, of any topology
 * const granted = await actor.call("acquire", "lock", "orders", 0, 2_000);
 * actor.kill("SIGSTOP"); // and "SIGCONT", or nothing for SIGKILL
 */
export class Actor {
  readonly pid: number;
  /** Resolves when the process has ended, for whatever reason. */
  readonly exit: Promise<void>;

  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #isOver = false;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
    child.on("message", (answer: Answer) => this.#settle(answer));
    child.on("error", () => {}); // a message to a process that has just ended; "exit" settles the call
    // A stopped process does not notice that its parent has gone, and would stay forever.
    const forget = endWithProcess(() => void child.kill("SIGKILL"));
    this.exit = once(child, "exit").then(([code, signal]) => {
      forget();
      this.#exited(signal ?? `code ${code}`);
    });
  }

  static async start(options: ActorOptions): Promise<Actor> {
    const child = fork(compiled(new URL("./actor-process.ts", import.meta.url)), {
      execArgv: [],
      serialization: "advanced", // JSON would make Infinity null
    });
    if (child.pid === undefined) throw await once(child, "error").then(([error]) => error);
    const actor = new Actor(child, child.pid);
    try {
      await actor.call("start", options);
    } catch (error) {
      actor.kill();
      throw error;
    }
    return actor;
  }

  /**
   * Rejects with the actor's error (name, code, reason, message), or when the process ends before
   * it answers.
   */
  call<M extends keyof ActorMethods>(method: M, ...args: Parameters<ActorMethods[M]>): Promise<Returned<M>> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#isOver) {
        reject(new Error(`Actor ${this.pid} has ended and cannot ${method}`));
        return;
      }
      const id = ++this.#calls;
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, method, args });
    }) as Promise<Returned<M>>;
  }

  /** SIGKILL by default; "SIGSTOP" and "SIGCONT" stop and continue it. */
  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") this.#isOver = true;
    this.#child.kill(signal);
  }

  /** Closes its lock client and its connection and waits for its end; also works after `kill()`. */
  async end(): Promise<void> {
    this.#child.kill("SIGCONT"); // a stopped process neither answers nor ends
    if (!this.#isOver) {
      await this.call("close");
      this.#child.disconnect();
    }
    await this.exit;
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("failure" in answer)
      waiting?.reject(Object.assign(new Error(answer.failure.message), answer.failure));
    else waiting?.resolve(answer.result);
  }

  #exited(how: string): void {
    this.#isOver = true;
    for (const { reject } of this.#waiting.values()) reject(new Error(`Actor ${this.pid} ended (${how})`));
    this.#waiting.clear();
  }
}
