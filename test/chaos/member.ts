import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { endWithProcess } from "../../tools/redis/reaper.ts";
import { compiled } from "../support/compiled.ts";
import type { Recorder } from "./history/recorder.ts";
import type { Order, Report, WorkerOptions } from "./worker/orders.ts";
import type { Usage } from "./worker/usage.ts";

export interface MemberSettings {
  readonly index: number;
  readonly recorder: Recorder;
  /** Environment variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** For one more life of it: `by` is the worker's name then. */
  options(by: string): WorkerOptions;
}

/** ms until a worker that was told to close must have ended; ms until one that was started should work. */
const CLOSES_WITHIN = 20_000;
const READY_WITHIN = 10_000;

/** A place among the workers: one process after another. */
export class Member {
  readonly index: number;
  readonly #settings: MemberSettings;
  #life = 0;
  #child: ChildProcess | null = null;
  /** Its end is our doing. */
  #isMeant = false;
  #isSuspended = false;
  #ready = Promise.resolve();
  #exit = Promise.resolve();
  #grantsBefore = 0;
  #grants = 0;
  #rested = (_: Usage) => {};

  constructor(settings: MemberSettings) {
    this.index = settings.index;
    this.#settings = settings;
  }

  /** Its name now: "2.1" is the first life of the second one. */
  get by(): string {
    return `${this.index + 1}.${this.#life}`;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get lives(): boolean {
    return this.#child !== null;
  }

  get grants(): number {
    return this.#grantsBefore + this.#grants;
  }

  /** Resolves when it works, or soon enough when it cannot reach Redis yet. */
  async start(): Promise<void> {
    if (this.#child) return;
    this.#life++;
    this.#isMeant = false;
    this.#isSuspended = false;
    const child = fork(compiled(new URL("./worker/process.ts", import.meta.url)), {
      execArgv: ["--no-warnings"], // they are in the history
      env: { ...process.env, ...this.#settings.env },
      serialization: "advanced",
    });
    const forget = endWithProcess(() => void child.kill("SIGKILL"));
    child.on("error", () => {}); // a message to a process that has just ended
    this.#child = child;
    this.#exit = once(child, "exit").then(([code, signal]) => {
      forget();
      this.#ended(code, signal);
    });
    this.#ready = new Promise((resolve) => {
      child.on("message", (report: Report) => {
        if (report.is === "ready") resolve();
        else if (report.is === "rested") this.#rested(report.usage);
        else this.#grants = report.grants;
      });
    });
    this.order({ do: "start", options: this.#settings.options(this.by) });
    await Promise.race([this.#ready, this.#exit, delay(READY_WITHIN)]);
  }

  order(order: Order): void {
    if (this.#child?.connected) this.#child.send(order);
  }

  /** What it has while no call is under way; null: some did not end in so many ms. It then goes on. */
  async usage(within: number): Promise<Usage | null> {
    const rested = new Promise<Usage>((resolve) => {
      this.#rested = resolve;
    });
    const enough = new AbortController();
    this.order({ do: "rest" });
    const late = delay(within, null, { signal: enough.signal }).catch(() => null);
    const usage = await Promise.race([rested, late]);
    enough.abort();
    this.order({ do: "go on" });
    return usage;
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    if (!this.#child) return;
    // Before the signal: a holder that dies here counts as one until now, and not longer.
    this.#dead(true, `killed by ${signal}`);
    this.#child.kill(signal);
    await this.#exit;
  }

  /** Has it end by itself in the middle of everything, which it tells. */
  async quit(): Promise<void> {
    this.order({ do: "exit" });
    await this.ended(CLOSES_WITHIN);
    await this.kill();
  }

  suspend(): void {
    if (!this.#child || this.#isSuspended) return;
    this.#isSuspended = true;
    this.#settings.recorder.tell({ is: "stopped", victim: this.by });
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    if (!this.#child || !this.#isSuspended) return;
    this.#isSuspended = false;
    this.#child.kill("SIGCONT");
    this.#settings.recorder.tell({ is: "continued", victim: this.by });
  }

  /** Has it close its client in the middle of everything. */
  async close(grace: number): Promise<void> {
    this.order({ do: "close", grace });
    await this.ended(CLOSES_WITHIN);
    if (!this.#child) return;
    this.#dead(false, `did not end within ${CLOSES_WITHIN} ms of its close()`);
    await this.kill();
  }

  async ended(within: number): Promise<void> {
    const enough = new AbortController();
    await Promise.race([this.#exit, delay(within, undefined, { signal: enough.signal }).catch(() => {})]);
    enough.abort();
  }

  #ended(code: number | null, signal: NodeJS.Signals | null): void {
    if (code !== 0 && !this.#isMeant) this.#dead(false, signal ?? `code ${code}`);
    this.#child = null;
    this.#grantsBefore += this.#grants;
    this.#grants = 0;
  }

  #dead(meant: boolean, how: string): void {
    if (this.#isMeant) return;
    this.#isMeant = true;
    this.#settings.recorder.tell({ is: "dead", victim: this.by, meant, how });
  }
}
