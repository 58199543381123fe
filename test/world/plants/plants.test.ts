import { describe, expect, it } from "vitest";
import { inTurn, partsOf } from "../../support/in-turn.ts";
import { missing } from "../effects.ts";
import { LAST_SEED } from "../seeds.ts";
import { ROOT, textWith } from "./copy.ts";
import { readFound } from "./found.ts";
import { plants } from "./index.ts";
import { find, run } from "./outside.ts";
import { failureOf, play } from "./trial.ts";

/** How many seeds a bug may need that its recorded seed does not find any more. */
const FURTHER = 20;

const found = await readFound();
const further = Array.from({ length: FURTHER }, (_, i) => i + 1);
/** What does not happen in any run shows in those with faults. */
const withFaults = further.filter((one) => one % 2 === 0);
const mine = inTurn(partsOf(plants, 2)).flat();
const inWorld = mine.filter(({ test }) => !test);
const inDirected = mine.filter(({ test }) => test?.project === "world");
const onRedis = plants.filter(({ test }) => test && test.project !== "world");

describe.concurrent("the world, with a planted bug", () => {
  it("breaks no promise without one", async () => {
    // The world's own tests show it for the fixed seeds.
    const others = Object.values(found).flatMap(({ seed }) => (seed && seed > LAST_SEED ? [seed] : []));
    const played = await play(null, [...withFaults, ...others]);
    expect(failureOf(played)).toBeNull();
    expect(played).toHaveLength(withFaults.length + others.length);
    // Each kind of fault has done something.
    expect(missing(played.slice(0, withFaults.length))).toEqual([]);
  });

  it.each(inWorld)("finds: $name", async (plant) => {
    const seed = found[plant.name]?.seed ?? null;
    const seeds = new Set(seed === null ? withFaults : [seed, ...further]);
    const played = await play(plant, [...seeds]);
    expect(failureOf(played), `"${plant.name}" survives ${played.length} seeds`).not.toBeNull();
    if (seed !== null && played.length > 1)
      console.warn(`"${plant.name}" needed ${played.length} seeds: record them anew`);
  });
});

describe.concurrent("a directed test, with a planted bug", () => {
  it.each(inDirected)("finds: $name", async (plant) => {
    expect((await run(plant, true)).failed, `"${plant.name}" survives`).toBeGreaterThan(0);
  });
});

// On a real Redis, these are for `npm run world -- --plants`.
describe("a test on a real Redis", () => {
  it.each(onRedis)("exists for: $name", async (plant) => {
    await find(plant);
  });
});

it.each(plants)("fits the present code: $name", async (plant) => {
  await textWith(plant, ROOT);
});

it("has a name of its own for each bug", () => {
  expect(new Set(plants.map(({ name }) => name)).size).toBe(plants.length);
});
