import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { type Assignment, runCrew } from "../../../benchmarks/crew/crew.ts";
import type { Program } from "../../../benchmarks/crew/member.ts";
import { loadFigures } from "../../../benchmarks/figures/load.ts";
import { LOAD } from "../../../benchmarks/scenarios/scenario.ts";
import type { Start } from "../../../benchmarks/workers/protocol.ts";
import { freshName, testUrl } from "../../support/fixture.ts";

// The processes of one round: cold, warm, and measured from one moment on.

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const assignment = (program: Program, processes: number, times: number): Assignment => ({
  program,
  processes,
  job: { contender: "floor-pair", url: testUrl(), seed: 1, library: null },
  cold: { load: { ...LOAD, times }, duration: 120_000 },
  warmUp: { load: { ...LOAD, times: 10 }, duration: 120_000 },
  task: { load: { ...LOAD, names: [freshName()], times: 5 }, duration: 120_000 },
  signal: new AbortController().signal,
  onProgress: () => {},
});

/**
 * Ends each step after another time, in which no other process may begin the next, and says what it
 * was told.
 */
const RECORDER = `
const { createInterface } = require("node:readline");
const micros = () => Number(process.hrtime.bigint()) / 1000;
const say = (what) => process.stdout.write(JSON.stringify(what) + "\\n");
let worker;
createInterface({ input: process.stdin }).on("line", (line) => {
  const told = JSON.parse(line);
  if (told.do === "leave") process.exit();
  if (told.do !== "start") { worker = told.worker; return say({ is: "ready" }); }
  setTimeout(() => say({ is: "done", samples: "", messages: [JSON.stringify({ ...told, heard: micros() })] }), 40 * worker);
});`;

it("a step begins in all processes at one moment, after the step before has ended in all of them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-crew-"));
  folders.push(folder);
  const file = join(folder, "recorder.cjs");
  writeFileSync(file, RECORDER);
  const program = { command: process.execPath, args: [file] };
  const prepared: number[] = [];
  const crew = await runCrew("done", assignment(program, 4, 20), async () => {
    prepared.push(Number(process.hrtime.bigint()) / 1_000);
  });
  type Told = Start & { readonly heard: number };
  const steps = [crew.cold, crew.warmedUp, crew.reports].map((reports) =>
    reports.map(({ messages: [message = ""] }): Told => JSON.parse(message)),
  );
  expect(steps.map((told) => told.map(({ compileEarly }) => compileEarly))).toEqual([
    [false, false, false, false],
    [true, true, true, true],
    [true, true, true, true],
  ]);
  expect(steps.map(([first]) => first?.load.is === "load" && first.load.times)).toEqual([20, 10, 5]);
  let ended = 0;
  for (const told of steps) {
    const [from = 0, ...more] = new Set(told.map((one) => one.from));
    expect(more).toEqual([]);
    expect(from).toBeGreaterThan(ended);
    ended = Math.max(...told.map(({ heard }) => heard));
  }
  // The server is read after the warm-up, and before the start.
  expect(prepared).toHaveLength(1);
  expect(prepared[0]).toBeGreaterThan(Math.max(...(steps[1] ?? []).map(({ heard }) => heard)));
  expect(prepared[0]).toBeLessThan(crew.began);
  expect(crew.began).toBe(steps[2]?.[0]?.from);
});

it("a new process notes what its first 1 000 acquisitions cost, and no callers begin before the start", async () => {
  const worker = fileURLToPath(new URL("../../../benchmarks/workers/worker.ts", import.meta.url));
  const program = { command: process.execPath, args: ["--import", "tsx", worker] };
  const chosen = assignment(program, 2, 1_200);
  const { cold, warmedUp, reports, began } = await runCrew("done", chosen, async () => {});
  const figures = loadFigures(
    reports,
    { ...LOAD, times: 5 },
    {
      cold,
      warmedUp,
      room: Number.POSITIVE_INFINITY,
      from: began,
      until: Number.POSITIVE_INFINITY,
      redisCpu: 0,
      redisWrites: 0,
      commands: null,
    },
  );
  const whole = Math.max(...cold.map(({ cpu }) => cpu)) / 1_000;
  expect(figures.coldFirst1000).toBeGreaterThan(whole / 10);
  expect(figures.coldFirst1000).toBeLessThan(whole);
  expect(figures.coldFirst2000).toBeNull();
  expect(figures.coldWaitMax).toBeGreaterThan(0);
  expect(figures.warmUp).toBe(1_210);
  // All acquisitions count: none began before the moment that counts from.
  expect(figures.waits).toHaveLength(2 * 5);
});
