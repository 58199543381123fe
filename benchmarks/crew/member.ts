import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import type { Job, Report, Word } from "../workers/protocol.ts";

/** How a worker program is started. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

const STDERR_TAIL = 400;

/** One worker process, in whatever language. */
export class Member {
  readonly #child: ChildProcess;
  readonly #reports = new EventEmitter();
  /** Never resolves. */
  readonly #failure: Promise<never>;
  #stderr = "";
  /** Acquisitions so far. */
  acquired = 0;

  constructor(program: Program, job: Job) {
    this.#child = spawn(program.command, program.args, { stdio: ["pipe", "pipe", "pipe"] });
    const { stdin, stdout, stderr } = this.#child;
    this.#failure = new Promise((_, reject) => {
      const fail = (why: string) =>
        reject(new Error(`worker ${job.worker} ${why}${this.#stderr && `: ${this.#stderr}`}`));
      this.#child.once("error", (error) => fail(`cannot run: ${error.message}`));
      this.#child.once("close", (code, signal) => fail(`ended early (${signal ?? `exit code ${code}`})`));
      this.#reports.once("failed", ({ why }) => fail(`failed: ${why}`));
    });
    this.#failure.catch(() => {});
    // A worker that is gone is told about by its end, not by the pipe to it.
    stdin?.on("error", () => {});
    stderr?.on("data", (text: Buffer) => {
      this.#stderr = (this.#stderr + text.toString()).slice(-STDERR_TAIL);
    });
    this.#reports.on("progress", ({ acquired }) => {
      this.acquired = acquired;
    });
    if (stdout) createInterface({ input: stdout }).on("line", (line) => this.#hear(line));
    this.tell(job);
  }

  tell(what: Job | Word): void {
    this.#child.stdin?.write(`${JSON.stringify(what)}\n`);
  }

  /** Resolves with its next report of this kind; rejects when the worker fails or dies. */
  hears<Kind extends Report["is"]>(kind: Kind): Promise<Extract<Report, { is: Kind }>> {
    const heard = once(this.#reports, kind).then(([report]) => report as Extract<Report, { is: Kind }>);
    return Promise.race([heard, this.#failure]);
  }

  /** Sends it away, by force if it does not go within this many ms. */
  async leave(within: number): Promise<void> {
    if (this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null)
      return;
    const gone = once(this.#child, "exit");
    this.tell({ do: "leave" });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), within);
    await gone;
    clearTimeout(timer);
  }

  #hear(line: string): void {
    const report = JSON.parse(line) as Report;
    this.#reports.emit(report.is, report);
  }
}
