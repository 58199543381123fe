import { rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { ServerProcess } from "./process.ts";
import { endWithProcess } from "./reaper.ts";

/** A Redis that can be connected to. */
export interface RedisServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /**
   * Stops the server if this process launched it, and removes its private folder. Safe to call
   * twice.
   */
  stop(): Promise<void>;
}

/** A Redis that this process launched, and that ends with it. */
export interface LocalServer extends RedisServer {
  /** The present process id; `restart()` changes it. */
  readonly pid: number;
  /** "suspended" only by `suspend()`. */
  readonly state: "running" | "suspended" | "ended";
  /** The server's working folder, with its log, `server.log`. */
  readonly dir: string;
  /** Ends the server as a crash would (default: SIGKILL) and waits until it is gone. */
  kill(signal?: "SIGKILL" | "SIGTERM" | "SIGINT"): Promise<void>;
  /** Suspends it (SIGSTOP): its connections stay open, and nothing is answered until `resume()`. */
  suspend(): void;
  resume(): void;
  /**
   * Starts it again on the same port, and empty, because nothing is persisted. Kills it first if it
   * still runs. `more`: further arguments, for this run.
   */
  restart(more?: readonly string[]): Promise<void>;
}

/** Starts the server on this port, with further arguments. */
export type Start = (port: number, more?: readonly string[]) => Promise<ServerProcess>;

export class Launched implements LocalServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  readonly #folderIsOurs: boolean;
  readonly #start: Start;
  readonly #forget: () => void;
  #process: ServerProcess;
  #suspended = false;
  #stopped = false;

  constructor(given: {
    port: number;
    url: string;
    dir: string;
    folderIsOurs: boolean;
    first: ServerProcess;
    start: Start;
  }) {
    this.port = given.port;
    this.url = given.url;
    this.dir = given.dir;
    this.#folderIsOurs = given.folderIsOurs;
    this.#process = given.first;
    this.#start = given.start;
    this.#forget = endWithProcess(() => {
      if (this.#folderIsOurs) rmSync(this.dir, { recursive: true, force: true });
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get state(): LocalServer["state"] {
    if (!this.#process.lives) return "ended";
    return this.#suspended ? "suspended" : "running";
  }

  async kill(signal: "SIGKILL" | "SIGTERM" | "SIGINT" = "SIGKILL"): Promise<void> {
    // A suspended process receives no other signal.
    if (signal !== "SIGKILL") this.resume();
    await this.#process.kill(signal);
    this.#suspended = false;
  }

  suspend(): void {
    this.#process.signal("SIGSTOP");
    this.#suspended = true;
  }

  resume(): void {
    this.#process.signal("SIGCONT");
    this.#suspended = false;
  }

  async restart(more?: readonly string[]): Promise<void> {
    if (this.#stopped) throw new Error("This server was stopped; launch another one");
    await this.kill();
    this.#process = await this.#start(this.port, more);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    // SIGKILL, because there is nothing to save, and it also ends a server that a test has
    // suspended.
    await this.kill();
    this.#forget();
    if (this.#folderIsOurs) await rm(this.dir, { recursive: true, force: true });
  }
}
