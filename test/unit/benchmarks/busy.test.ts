import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { busyShare, readDone } from "../../../benchmarks/figures/busy.ts";
import type { ScenarioResult } from "../../../benchmarks/figures/result.ts";
import { watchMachine } from "../../../benchmarks/machine.ts";
import { loadScenarios, saveScenario } from "../../../benchmarks/report/results.ts";
import { testUrl } from "../../support/fixture.ts";
import { until } from "../../support/until.ts";

// What is measured while other processes use the machine is marked, and never shown.

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** /proc/stat of two processors, in ticks. */
const stat = (user: number, idle: number, steal = 0): string =>
  `cpu  ${user} 1 10 ${idle} 0 0 0 ${steal} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5 6\n`;
/** /proc/self/stat: utime, stime, cutime and cstime are the fields 14 to 17. */
const self = (...times: number[]): string =>
  `4711 (a (b) c) S ${"0 ".repeat(10)}${times.join(" ")} 20 0 1 0 999\n`;

describe("the check for a busy machine", () => {
  it.each([
    ["nothing but the benchmark", stat(300, 900), self(100, 50, 140, 10), null],
    ["others used a little", stat(330, 900), self(100, 50, 140, 10), null],
    ["others used a quarter", stat(600, 600), self(100, 50, 140, 10), 0.25],
    [
      "another machine on the same hardware used a quarter",
      stat(300, 600, 300),
      self(100, 50, 140, 10),
      0.25,
    ],
    ["nothing passed", stat(0, 0), self(0, 0, 0, 0), null],
  ])("%s", (_, after, selfAfter, busy) => {
    const before = readDone(stat(0, 0), self(0, 0, 0, 0), 0);
    expect(busyShare(before, readDone(after, selfAfter, 0))).toBe(busy);
  });

  it("the server's time is the benchmark's own", () => {
    const before = readDone(stat(0, 0), self(0, 0, 0, 0), 5_000_000);
    const later = (server: number) => readDone(stat(600, 600), self(0, 0, 0, 0), server);
    expect(busyShare(before, later(11_000_000))).toBe(null);
    expect(busyShare(before, later(5_000_000))).toBe(0.5);
  });

  it.runIf(process.platform === "linux")(
    "processes that compute beside the benchmark are found",
    async () => {
      const redis = new Redis(testUrl());
      cleanups.push(() => redis.disconnect());
      const busy = await watchMachine(redis);
      for (let i = 0; i < availableParallelism(); i++) {
        const child: ChildProcess = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
        cleanups.push(() => child.kill("SIGKILL"));
      }
      await until(async () => (await busy()) !== null, { what: "the processes to be seen" });
    },
  );
});

describe("results", () => {
  const result = (scenario: string, busy: number | null): ScenarioResult => ({
    scenario,
    about: "",
    seed: 1,
    rounds: 1,
    machine: { cpu: "", cores: 2, node: "", redis: "", java: null, date: "" },
    busy,
    entries: [],
  });

  it("of a busy machine are refused by the chart and table programs, and named", async () => {
    const dir = mkdtempSync(join(tmpdir(), "holdfast-results-"));
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }));
    await saveScenario(dir, result("quiet", null));
    expect((await loadScenarios(dir)).map(({ scenario }) => scenario)).toEqual(["quiet"]);
    await saveScenario(dir, result("loud", 0.372));
    await expect(loadScenarios(dir)).rejects.toThrow(
      /loud\.json: other processes used 37 % of the machine while this was measured/,
    );
  });
});
