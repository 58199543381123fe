import { expect, it } from "vitest";
import { scenarios } from "../../../benchmarks/scenarios/all.ts";
import type { Scenario } from "../../../benchmarks/scenarios/scenario.ts";

// Not by their names: they lead to libraries whose types are not here before the benchmarks are installed.
const load = (path: string) => import(new URL(`../../../benchmarks/${path}`, import.meta.url).href);
const { readCommandLine } = (await load("command-line.ts")) as {
  readCommandLine(args: readonly string[]): { readonly scenarios: readonly Scenario[] } | null;
};
const { findPlayers } = (await load("crew/players.ts")) as {
  findPlayers(how: { profile: null; other: null }): ReadonlyMap<string, unknown>;
};

it("scenarios have names of their own, and contenders that exist, each once", () => {
  const names = scenarios.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const players = findPlayers({ profile: null, other: null });
  for (const { contenders } of scenarios) {
    expect(contenders.filter((id) => !players.has(id))).toEqual([]);
    expect(new Set(contenders).size).toBe(contenders.length);
  }
});

it("lingering comes beside hot with the same load, and only there; steady acquires each name once a second", () => {
  const loadOf = (wanted: string) => scenarios.find(({ name }) => name === wanted)?.load;
  for (const size of ["32x1", "4x4"]) expect(loadOf(`lingering-${size}`)).toEqual(loadOf(`hot-${size}`));
  expect(loadOf("lingering-8x1")).toMatchObject({ tasks: 1, hold: 0, think: 0 });
  const hot = scenarios.filter(({ name }) => name.startsWith("hot-"));
  expect(hot.filter(({ contenders }) => contenders.includes("lingering-lock"))).toEqual([]);
  const steady = scenarios.find(({ name }) => name === "steady");
  if (steady?.load.is !== "load") throw new Error("There is no load 'steady'");
  expect(steady.processes * steady.load.tasks).toBe(steady.load.names.length);
  // A pause is random from 0 on.
  expect(steady.load.think / 2).toBe(1_000);
});

it("a quick run is short, saves nothing, and runs cold for a small part of the time", () => {
  const quick = readCommandLine(["--quick", "--scenario", "hot-2x1"]);
  expect(quick).toMatchObject({ rounds: 1, save: false, before: 0.03 });
  expect(quick?.scenarios.map(({ duration }) => duration)).toEqual([200]);
  expect(readCommandLine(["--scenario", "hot-2x1"])).toMatchObject({ rounds: 3, save: true, before: 1 });
});
