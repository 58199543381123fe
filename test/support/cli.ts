import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { processes } from "../../src/tools/cli/run/processes.ts";
import { codeOf } from "../../src/tools/cli/run/signals.ts";
import { endWithProcess } from "../../tools/redis/reaper.ts";
import { nodeRedisVersion } from "./carrier.ts";
import { compiled } from "./compiled.ts";
import { testUrl } from "./fixture.ts";
import { until } from "./until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Below node_modules, so that its imports are found. */
const folder = join(root, "node_modules", `.holdfast-cli-${process.pid}`);
const living = new Set<ChildProcess>();

/** The folder ends with this process. */
function endsHere(folder: string): void {
  endWithProcess(() => rmSync(folder, { recursive: true, force: true }));
}

/** A folder that ends with this process. */
export function temporary(): string {
  if (mkdirSync(folder, { recursive: true })) endsHere(folder);
  return mkdtempSync(join(folder, "files-"));
}

/**
 * The path of the program in a project that has, of all Redis client libraries, only this one:
 * `libraries` are names of packages in this repository, such as "redis5" for version 5 of redis.
 */
export function programBeside(...libraries: readonly string[]): string {
  // No folder above has any.
  const project = mkdtempSync(join(tmpdir(), "holdfast-project-"));
  endsHere(project);
  mkdirSync(join(project, "node_modules"));
  for (const name of ["eventemitter3", "p-timeout", ...libraries])
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name.replace(/5$/, "")));
  const program = join(project, "holdfast.mjs");
  copyFileSync(compiled(SOURCE, true), program);
  return program;
}

const SOURCE = new URL("../../src/tools/cli/index.ts", import.meta.url);
let beside: string | undefined;

/** A program's output, and how it ended. */
export interface Finished {
  /** As in a shell: 128 + n if signal n has ended it. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `holdfast` as a process, without a terminal. */
export class Cli {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  stdout = "";
  stderr = "";

  /**
   * `url`: of Redis. `options`: of the process. `wrap`: makes the command line that is run instead.
   */
  constructor(
    url: string,
    args: readonly string[],
    options: SpawnOptions = {},
    wrap = (line: readonly string[]): readonly string[] => line,
  ) {
    const env = { ...process.env, HOLDFAST_REDIS: url, NO_COLOR: "1", ...options.env };
    const [file = "", ...rest] = wrap([process.execPath, Cli.program, ...args]);
    this.child = spawn(file, rest, { stdio: "pipe", ...options, env });
    living.add(this.child);
    const forget = endWithProcess(() => this.child.kill("SIGKILL"));
    this.child.stdout?.on("data", (text) => {
      this.stdout += text;
    });
    this.child.stderr?.on("data", (text) => {
      this.stderr += text;
    });
    this.finished = new Promise((resolve) =>
      this.child.once("close", (code, signal) => {
        living.delete(this.child);
        forget();
        resolve({
          code: signal ? codeOf(signal) : (code ?? 0),
          signal,
          stdout: this.stdout,
          stderr: this.stderr,
        });
      }),
    );
  }

  /**
   * In its own terminal, by util-linux's `script`: text written to its stdin is typed there.
   * `before`: a line of the shell.
   */
  static inTerminal(url: string, args: readonly string[], before = ":"): Cli {
    const quoted = (line: readonly string[]) =>
      line.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    return new Cli(url, args, {}, (line) => [
      "script",
      "-qefc",
      `stty rows 40 cols 200; ${before}\nexec ${quoted(line)}`,
      "/dev/null",
    ]);
  }

  /** The path of the program: beside both libraries, or beside node-redis if it carries the locks. */
  static get program(): string {
    if (nodeRedisVersion === null) return compiled(SOURCE);
    beside ??= programBeside(nodeRedisVersion === 5 ? "redis5" : "redis");
    return beside;
  }

  /** Kills the processes that a test has left, and waits for their end. */
  static async endAll(): Promise<void> {
    for (const child of living) child.kill("SIGKILL");
    await until(() => living.size === 0);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Resolves when its output contains that. */
  async says(text: string | RegExp): Promise<void> {
    const isThere = () => (typeof text === "string" ? this.#all.includes(text) : text.test(this.#all));
    await until(isThere, { what: `${text} in the output of holdfast` }).catch((error: Error) => {
      throw new Error(`${error.message}; it was:\n${this.#all}`);
    });
  }

  get #all(): string {
    return this.stdout + this.stderr;
  }
}

/** On the server of all tests. */
export const cli = (...args: string[]): Cli => new Cli(testUrl(), args);

/** `holdfast run` with a line of the shell. */
export const sh = (flags: readonly string[], name: string, line: string): Cli =>
  cli("run", ...flags, name, "--", "sh", "-c", line);

/** The last line of `--json` output. */
export const lastJson = (text: string): unknown => JSON.parse(text.trim().split("\n").at(-1) ?? "");

/** Does this process run? A zombie does not. */
export const lives = (pid: number): boolean => processes().some((one) => one.pid === pid);
