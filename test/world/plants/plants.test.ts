import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { missing } from "../effects.ts";
import { ROOT, textWith } from "./copy.ts";
import { readFound } from "./found.ts";
import { plants } from "./index.ts";
import { failureOf, play } from "./trial.ts";

/** How many seeds a bug may need that its recorded seed does not find any more. */
const FURTHER = 20;

const found = await readFound();
const further = Array.from({ length: FURTHER }, (_, i) => i + 1);
const inWorld = plants.filter(({ test }) => !test);

describe.concurrent("the world, with a planted bug", () => {
  it("breaks no promise without one", async () => {
    const seeds = new Set([...further, ...Object.values(found).map(({ seed }) => seed)]);
    const played = await play(null, [...seeds]);
    expect(failureOf(played)).toBeNull();
    expect(played).toHaveLength(seeds.size);
    // Each kind of fault has done something.
    expect(missing(played.filter(({ seed }) => seed <= FURTHER))).toEqual([]);
  });

  it.each(inWorld)("finds: $name", async (plant) => {
    const { seed } = found[plant.name] ?? {};
    const seeds = new Set([...(seed === undefined ? [] : [seed]), ...further]);
    const played = await play(plant, [...seeds]);
    expect(failureOf(played), `"${plant.name}" survives ${played.length} seeds`).not.toBeNull();
    if (played.length > 1) console.warn(`"${plant.name}" needed ${played.length} seeds: record them anew`);
  });
});

describe("a test outside of the world", () => {
  it.each(plants.filter(({ test }) => test))("exists for: $name", async (plant) => {
    await textWith(plant, ROOT);
    const text = await readFile(join(ROOT, plant.test?.file ?? ""), "utf8");
    expect(text).toContain(plant.test?.title);
  });
});

it("has a name of its own for each bug", () => {
  expect(new Set(plants.map(({ name }) => name)).size).toBe(plants.length);
});
