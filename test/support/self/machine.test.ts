import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { afterEach, expect, it } from "vitest";
import { isBusy, type Machine, measureMachine } from "../../../tools/machine.ts";
import { afterFailures, beforeTests } from "../machine-first.ts";

// The report about a machine before the tests, and after failures.

const busy: ChildProcess[] = [];
afterEach(() => {
  for (const child of busy.splice(0)) child.kill("SIGKILL");
});

const QUIET: Machine = { cores: 2, share: 0.97, late: 2, load: 0.1 };
const BUSY: Machine = { cores: 2, share: 0.3, late: 14, load: 9 };

it("a machine is busy if other processes compute on it", async () => {
  for (let i = 0; i < 3 * availableParallelism(); i++) {
    const args = ["-e", "console.log('runs'); for (;;);"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    busy.push(child);
    await once(child.stdout as NodeJS.ReadableStream, "data");
  }
  const measured = await measureMachine();
  expect(measured.share).toBeGreaterThan(0);
  expect(isBusy(measured)).toBe(true);
});

it("a busy machine is named before the tests, and a quiet one is not called busy", () => {
  expect(beforeTests(QUIET)).toBe(
    "Machine: 2 cores, load 0.1; a process gets 97 % of them, timers up to 2 ms late.",
  );
  expect(beforeTests(BUSY)).toMatch(
    /a process gets 30 % of them, .* Busy\. Tests that wait for a time may fail/,
  );
  expect(isBusy({ ...QUIET, late: 300 })).toBe(true);
});

it.each([
  [QUIET, QUIET, false],
  [BUSY, QUIET, true],
  [QUIET, BUSY, true],
])("after failures the summary says whether the machine may be the cause", (before, after, isCause) => {
  const said = afterFailures(before, after);
  expect(said).toContain(isCause ? "Busy." : "probably not why they failed");
  expect(said.split("\n")).toHaveLength(3);
});
