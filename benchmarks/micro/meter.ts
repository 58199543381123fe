import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { serverCommand } from "../../tools/redis/command.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { byPerf, Callgrind, whyNoPerf } from "./counting.ts";

/** A private server, and what counts its work. */
export interface Meter {
  /** What is counted and by what, in a line. */
  readonly about: string;
  readonly unit: "k" | "µs";
  /**
   * How many acquisitions are enough for one measurement, and how often it is repeated: the
   * smallest counts.
   */
  readonly size: number;
  readonly repeats: number;
  readonly url: string;
  /**
   * What the server needs for this work: thousands of user instructions, or µs of CPU time of its
   * main thread.
   */
  measure(work: () => Promise<void>): Promise<number>;
  stop(): Promise<void>;
}

/** The server's housekeeping runs once a second and not ten times. */
const QUIET = ["--hz", "1", "--dynamic-hz", "no"];
const COUNTED = "k = 1 000 user instructions";

/**
 * The best meter of this machine: perf, where the processor's counters can be read; else valgrind,
 * which counts the same instructions by executing them itself; else CPU time, which other processes
 * disturb.
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
  if (command !== null && Callgrind.isHere()) return launchInValgrind(command, obstacle);
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

async function launchInValgrind(command: string, obstacle: string): Promise<Meter> {
  const callgrind = new Callgrind();
  const { dir } = callgrind;
  const wrapper = join(dir, "redis-server");
  const words = callgrind.command.map((word) => `'${word}'`).join(" ");
  writeFileSync(wrapper, `#!/bin/sh\nexec ${words} '${command}' "$@"\n`, { mode: 0o755 });
  const server = await launchServer({ args: QUIET, command: wrapper, dir });
  return {
    about: `${COUNTED}, counted by valgrind: ${obstacle}`,
    unit: "k",
    size: 200,
    repeats: 1,
    url: server.url,
    measure: (work) => callgrind.measure(server.pid, work),
    async stop() {
      await server.stop();
      callgrind.remove();
    },
  };
}

async function mainThread(redis: Redis): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (key: string): number => Number(new RegExp(`^${key}:([\\d.]+)`, "m").exec(info)?.[1] ?? 0);
  return (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread")) * 1_000_000;
}
