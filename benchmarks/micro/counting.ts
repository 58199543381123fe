import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { findCommand } from "../../tools/redis/command.ts";
import { callgrindTotal, perfCount } from "./counters.ts";

/** Why `perf` counts no instructions on this machine; null: it does. */
export function whyNoPerf(): string | null {
  const { error, stderr } = spawnSync("perf", ["stat", "-x,", "-e", "instructions:u", "true"], {
    encoding: "utf8",
  });
  if (error) return "perf is not installed";
  return perfCount(stderr) === null ? "perf cannot count instructions here" : null;
}

/** Thousands of user instructions of a process meanwhile. */
export async function byPerf(pid: number, work: () => Promise<unknown>): Promise<number> {
  const counts = ["stat", "-x,", "-e", "instructions:u", "-p", `${pid}`];
  // It starts with its counter off, is told over fd 3 when to count, and confirms over fd 4.
  const control = ["--delay", "-1", "--control", "fd:3,4"];
  const perf = spawn("perf", [...counts, ...control], {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
  });
  let output = "";
  perf.stderr?.on("data", (text: Buffer) => {
    output += text.toString();
  });
  const words = perf.stdio[3] as Writable;
  const answers = createInterface({ input: perf.stdio[4] as Readable });
  const tell = async (word: "enable" | "disable"): Promise<void> => {
    const answered = once(answers, "line", { signal: AbortSignal.timeout(10_000) });
    words.write(`${word}\n`);
    await answered;
  };
  await tell("enable");
  await work();
  await tell("disable");
  const ended = once(perf, "close");
  perf.kill("SIGINT");
  await ended;
  const count = perfCount(output);
  if (count === null) throw new Error(`perf counted nothing: ${output}`);
  return count / 1_000;
}

/**
 * Counts what one process does by executing its instructions itself. Outside of measurements the
 * process runs without counting, five times slower than by itself; within, fifty times.
 */
export class Callgrind {
  /** A folder of its own. */
  readonly dir = mkdtempSync(join(tmpdir(), "holdfast-valgrind-"));
  /** What stands before the command of the process. */
  readonly command: readonly string[] = [
    "valgrind",
    "-q",
    "--tool=callgrind",
    "--instr-atstart=no",
    "--smc-check=all-non-file", // the process may compile code as it runs
    `--callgrind-out-file=${this.dir}/counts`,
  ];
  #dumps = 0;

  static isHere(): boolean {
    return findCommand(["valgrind"]) !== null && findCommand(["callgrind_control"]) !== null;
  }

  /** Thousands of user instructions of the process meanwhile. */
  async measure(pid: number, work: () => Promise<unknown>): Promise<number> {
    const control = (...args: string[]) =>
      promisify(execFile)("callgrind_control", [...args, `${pid}`], { timeout: 60_000 });
    await control("-i", "on");
    await work();
    await control("-i", "off");
    await control("-d");
    const dump = `counts.${++this.#dumps}`;
    if (!readdirSync(this.dir).includes(dump)) throw new Error(`valgrind has not written ${dump}`);
    return callgrindTotal(readFileSync(join(this.dir, dump), "utf8")) / 1_000;
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
