import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { loadProduct } from "./product.ts";
import { simulate } from "./simulate.ts";

/** The even ones have faults. */
const SEEDS = [4, 7, 12];

/** In a process of its own, beside the others. */
async function hashOf(seed: number): Promise<string> {
  const args = ["--import", "tsx", "test/world/index.ts", "--seed", String(seed)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return /hash (\w+)/.exec(stdout)?.[1] ?? stdout;
}

test("a seed replays every event exactly, in other processes at the same time", async () => {
  const load = await loadProduct(".");
  const others = await Promise.all(SEEDS.map(hashOf));
  const here: string[] = [];
  for (const seed of SEEDS) here.push((await simulate(load, seed)).hash);
  expect(others).toEqual(here);
  expect(new Set(here).size).toBe(SEEDS.length);
});

test("another seed, another run; a story tells each event that the hash is of", async () => {
  const load = await loadProduct(".");
  const told = await simulate(load, 5, { isTold: true });
  const untold = await simulate(load, 5);
  expect(told.hash).toBe(untold.hash);
  expect(untold.story).toEqual([]);
  expect(told.story.some((line) => /process 0 +sends handoff\/acquire/.test(line))).toBe(true);
  expect(told.story.some((line) => /Redis +process 0: handoff\/acquire: /.test(line))).toBe(true);
  expect(told.story.some((line) => /process \d +has lock lock:\w, token \d+/.test(line))).toBe(true);
});
