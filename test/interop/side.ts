import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { classpathOf } from "../../tools/build/maven.ts";
import type { Address } from "../support/servers/connection.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const PROJECT = fileURLToPath(new URL("redisson/", import.meta.url));
/** Without it the compilers of several JVMs fight over two cores. */
const QUICK_COMPILER = "-XX:TieredStopAtLevel=1";

export type Language = "java" | "node";
export type Kind = "redissonLock" | "redissonFencedLock";

export interface Reply {
  readonly value: string;
  /**
   * ns of the system's monotonic clock, which all processes of the machine share: when it began,
   * and when it was done.
   */
  readonly began: bigint;
  readonly ended: bigint;
}

/** A thread of a side at one lock; a lock belongs to the thread that took it. */
export interface Thread {
  /** Waits for ever. Resolves with the token as `value`; a lease of -1 is the watchdog's. */
  lock(lease?: number): Promise<Reply>;
  /** What a verb answers: a token or "null" of `tryLock`, "true", ms, … */
  ask(verb: string, ...args: (string | number)[]): Promise<string>;
  unlock(): Promise<Reply>;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/**
 * A process that shares locks with others, in Java with Redisson or in Node.js with Holdfast: the
 * same verbs for both. A request is a line, `<id> <thread> <kind> <name> <verb> <arguments …>`; a
 * reply is `<id> <began> <ended> ok <value>`, or `error` and its text.
 */
export class Side {
  readonly language: Language;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<string, Waiting>();
  readonly #exit: Promise<unknown>;
  #requests = 0;

  private constructor(language: Language, child: ChildProcess) {
    this.language = language;
    this.#child = child;
    living.add(child);
    child.stdin?.on("error", () => {}); // a line to a process that has just ended
    this.#exit = once(child, "exit").then(() => {
      living.delete(child);
      for (const { reject } of this.#waiting.values()) reject(new Error(`The ${language} side has ended`));
      this.#waiting.clear();
    });
  }

  /** `watchdog`: the lease in ms of a call that names none, renewed each third of it. */
  static async start(language: Language, { redis, nodes }: Address, watchdog = 30_000): Promise<Side> {
    const servers = nodes ?? [{ host: redis.host ?? "", port: redis.port ?? 0 }];
    const urls = servers.map(({ host, port }) => `redis://${host}:${port}`);
    const args = [`${watchdog}`, nodes ? "cluster" : "single", ...urls];
    const child =
      language === "java"
        ? spawn("java", [
            "-Xmx256m",
            QUICK_COMPILER,
            "-cp",
            classpathOf(PROJECT),
            "holdfast.interop.Main",
            ...args,
          ])
        : spawn(
            process.execPath,
            ["--import", "tsx", fileURLToPath(new URL("node-side.ts", import.meta.url)), ...args],
            { cwd: ROOT },
          );
    const side = new Side(language, child);
    child.stderr.pipe(process.stderr);
    await side.#listen(child);
    return side;
  }

  thread(name: string, kind: Kind, lock: string): Thread {
    const send = (verb: string, ...args: (string | number)[]): Promise<Reply> =>
      this.#send([name, kind, lock, verb, ...args].join(" "));
    return {
      lock: (lease = -1) => send("lock", lease),
      ask: async (verb, ...args) => (await send(verb, ...args)).value,
      unlock: () => send("unlock"),
    };
  }

  /** When it has read its clock, by its own clock. */
  now(): Promise<Reply> {
    return this.#send("clock redissonLock none now");
  }

  /** SIGKILL: it gives nothing back. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
  }

  #send(request: string): Promise<Reply> {
    const id = `${++this.#requests}`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin?.write(`${id} ${request}\n`);
    });
  }

  /** Resolves when it is ready. */
  #listen({ stdout }: ChildProcess): Promise<void> {
    return new Promise((ready, failed) => {
      void this.#exit.then(() => failed(new Error(`The ${this.language} side has ended`)));
      if (!stdout) return;
      createInterface({ input: stdout }).on("line", (line) => {
        if (line === "ready") return ready();
        const [, id = "", began = "", ended = "", outcome, value = ""] =
          /^(\d+) (\d+) (\d+) (ok|error) ?(.*)$/.exec(line) ?? [];
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (outcome === "ok") waiting?.resolve({ value, began: BigInt(began), ended: BigInt(ended) });
        else waiting?.reject(new Error(value || `not understood: ${line}`));
      });
    });
  }
}
