import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { findCommand, serverCommand } from "../../tools/redis/command.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { callgrindTotal, perfCount } from "./counters.ts";

/** A private server, and what counts its work. */
export interface Meter {
  /** What is counted and by what, in a line. */
  readonly about: string;
  readonly unit: "k" | "µs";
  /** How many acquisitions are enough for one measurement, and how often it is repeated: the smallest counts. */
  readonly size: number;
  readonly repeats: number;
  readonly url: string;
  /** What the server needs for this work: thousands of user instructions, or µs of CPU time of its main thread. */
  measure(work: () => Promise<void>): Promise<number>;
  stop(): Promise<void>;
}

/** The server's housekeeping runs once a second and not ten times. */
const QUIET = ["--hz", "1", "--dynamic-hz", "no"];
const COUNTED = "k = 1 000 user instructions";

/**
 * The best meter of this machine: perf, where the processor's counters can be read; else valgrind, which counts the same
 * instructions by executing them itself; else CPU time, which other processes disturb.
 */
export async function launchMeter(): Promise<Meter> {
  const obstacle = whyNoPerf();
  if (obstacle === null) {
    const server = await launchServer({ args: QUIET });
    return {
      about: `${COUNTED}, counted by perf`,
      unit: "k",
      size: 1_000,
      repeats: 5,
      url: server.url,
      measure: (work) => byPerf(server.pid, work),
      stop: () => server.stop(),
    };
  }
  const command = serverCommand();
  if (command !== null && findCommand(["valgrind"]) !== null && findCommand(["callgrind_control"]) !== null)
    return launchInValgrind(command, obstacle);
  const server = await launchServer({ args: QUIET });
  const redis = new Redis(server.url);
  return {
    about: `µs of CPU time, which other processes disturb: ${obstacle}, and there is no valgrind`,
    unit: "µs",
    size: 1_000,
    repeats: 9,
    url: server.url,
    async measure(work) {
      const before = await mainThread(redis);
      await work();
      return (await mainThread(redis)) - before;
    },
    async stop() {
      redis.disconnect();
      await server.stop();
    },
  };
}

function whyNoPerf(): string | null {
  const { error, stderr } = spawnSync("perf", ["stat", "-x,", "-e", "instructions:u", "true"], {
    encoding: "utf8",
  });
  if (error) return "perf is not installed";
  return perfCount(stderr) === null ? "perf cannot count instructions here" : null;
}

async function byPerf(pid: number, work: () => Promise<void>): Promise<number> {
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

/** Outside of measurements the server runs without counting, five times slower than by itself; within, fifty times. */
async function launchInValgrind(command: string, obstacle: string): Promise<Meter> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-valgrind-"));
  const wrapper = join(dir, "redis-server");
  const options = ["--tool=callgrind", "--instr-atstart=no", `--callgrind-out-file='${dir}/counts'`];
  writeFileSync(wrapper, `#!/bin/sh\nexec valgrind ${options.join(" ")} '${command}' "$@"\n`, {
    mode: 0o755,
  });
  const server = await launchServer({ args: QUIET, command: wrapper, dir });
  const control = (...args: string[]) =>
    promisify(execFile)("callgrind_control", [...args, `${server.pid}`], { timeout: 60_000 });
  let dumps = 0;
  return {
    about: `${COUNTED}, counted by valgrind: ${obstacle}`,
    unit: "k",
    size: 200,
    repeats: 1,
    url: server.url,
    async measure(work) {
      await control("-i", "on");
      await work();
      await control("-i", "off");
      await control("-d");
      const dump = `counts.${++dumps}`;
      if (!readdirSync(dir).includes(dump)) throw new Error(`valgrind has not written ${dump}`);
      return callgrindTotal(readFileSync(join(dir, dump), "utf8")) / 1_000;
    },
    async stop() {
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function mainThread(redis: Redis): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (key: string): number => Number(new RegExp(`^${key}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);
  return (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread")) * 1_000_000;
}
