import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { launchServer } from "../../tools/redis/index.ts";
import { javaProgram } from "../crew/java.ts";
import type { Program } from "../crew/member.ts";
import { PATIENCE } from "./lines.ts";

const TRIAL = fileURLToPath(new URL("./trial.js", import.meta.url));
/** A JVM on a busy machine. */
const START_WITHIN = 60_000;

/** What takes part: the same ids as in the scenarios. */
export type Library = "lock" | "redlock4" | "redlock" | "redlock-universal" | "redis-semaphore" | "java-lock";
/** Those that renew a lease, and tell when it is lost. */
export type Renewing = Exclude<Library, "java-lock" | "redlock4">;

/**
 * ms from the end of a block of the event loop, which was longer than the lease, to the call that
 * tells the holder. Null: it was not told in 30 s.
 */
export async function timeToLoss(library: Renewing, signal: AbortSignal): Promise<number | null> {
  const server = await launchServer();
  try {
    const trial = new Trial(node("blocked", library, server.url), signal);
    return await trial
      .ready()
      .then(() => trial.begin())
      .finally(() => trial.end());
  } finally {
    await server.stop();
  }
}

/**
 * ms from the call of lock() to its error, for all of them at once, when the server is gone (its
 * port refuses), or hangs (it accepts, and never answers). Null: no error in 30 s.
 */
export async function timesToError(
  libraries: readonly Library[],
  how: "gone" | "hangs",
  signal: AbortSignal,
): Promise<(number | null)[]> {
  const server = await launchServer();
  const trials = libraries.map((library) => {
    const program =
      library === "java-lock"
        ? javaProgram("holdfast.bench.Outage", server.url)
        : node("outage", library, server.url);
    return new Trial(program, signal);
  });
  try {
    await Promise.all(trials.map((trial) => trial.ready()));
    if (how === "gone") await server.kill();
    else server.suspend();
    return await Promise.all(trials.map((trial) => trial.begin()));
  } finally {
    for (const trial of trials) trial.end();
    await server.stop();
  }
}

const node = (...args: string[]): Program => ({ command: process.execPath, args: [TRIAL, ...args] });

/** A process of trial.ts, or its counterpart in Java. */
class Trial {
  readonly #child;
  readonly #lines;

  constructor({ command, args }: Program, signal: AbortSignal) {
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"], signal, killSignal: "SIGKILL" });
    this.#child.on("error", () => {}); // its lines end then
    this.#child.stdin.on("error", () => {});
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async ready(): Promise<void> {
    if ((await this.#line(START_WITHIN)) !== "ready") throw new Error("A process of the table did not start");
  }

  async begin(): Promise<number | null> {
    this.#child.stdin.write("\n");
    const line = await this.#line(PATIENCE);
    return line === null ? null : Number(line);
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }

  async #line(within: number): Promise<string | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(resolve, within, null);
    });
    const next = this.#lines.next().then(({ value }) => (value as string | undefined) ?? null);
    return Promise.race([next, late]).finally(() => clearTimeout(timer));
  }
}
