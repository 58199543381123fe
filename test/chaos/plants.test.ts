import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Fault } from "./faults/fault.ts";
import { type RunOptions, run } from "./run.ts";
import type { Plant } from "./worker/plants.ts";

// A checker that finds nothing proves nothing: with a bug in every worker, a short run must show it.

/** Stops one of some workers for longer than the shorter leases. */
const longStop = (who: number): Fault => ({
  kind: "stop a worker for long",
  weight: 1,
  async run({ fleet }, begin) {
    const victim = fleet.members[who];
    begin(`${victim?.by}`);
    victim?.suspend();
    await delay(2_000);
    victim?.resume();
  },
});

interface Ill {
  readonly plant: Plant;
  /** What the bug needs to show itself. */
  readonly needs: Pick<RunOptions, "seconds" | "only" | "faults"> &
    Partial<Pick<RunOptions, "topology" | "seed">>;
  /** What is broken by it. */
  readonly rule: string;
}

const ills: readonly Ill[] = [
  { plant: "grant unchecked", needs: { seconds: 3, only: [] }, rule: "one holder" },
  { plant: "release unowned", needs: { seconds: 8, only: ["drop replies"] }, rule: "one holder" },
  {
    plant: "deadline late",
    needs: { seconds: 14, faults: [longStop(0), longStop(1), longStop(2)] },
    rule: "one holder",
  },
  {
    plant: "tokens counted",
    needs: { seconds: 5, only: ["crash and restart empty"] },
    rule: "growing tokens",
  },
  {
    plant: "no refusals",
    needs: { seconds: 8, only: ["no network", "stop the server"] },
    rule: "answers in time",
  },
  {
    plant: "half is enough",
    needs: { topology: "quorum", seconds: 3, only: [] },
    rule: "one holder",
  },
  {
    plant: "young nodes vote",
    // Whoever is stopped keeps the lock until his lease ends; with this seed, twice right before the nodes crash.
    needs: {
      topology: "quorum",
      seed: 10_928,
      seconds: 8,
      only: ["crash and restart of a majority", "stop a worker"],
    },
    rule: "one holder",
  },
];
const usual = { topology: "standalone", seed: 1, workers: 3 } as const;

describe("the checker finds a planted bug", () => {
  it.each(ills)("$plant", { timeout: 120_000 }, async ({ plant, needs, rule }) => {
    const { violations, folder } = await run({ ...usual, ...needs, plant, drain: 8_000 });
    await rm(folder, { recursive: true, force: true });
    expect(violations.map((violation) => violation.rule)).toContain(rule);
  });

  it("and none where there is none", { timeout: 120_000 }, async () => {
    const { violations, folder } = await run({ ...usual, seconds: 8 });
    await rm(folder, { recursive: true, force: true });
    expect(violations.map(({ what }) => what)).toEqual([]);
  });
});
