import { describe, expect, test } from "vitest";
import { missing } from "./effects.ts";
import { loadProduct } from "./product.ts";
import { type Outcome, simulate } from "./simulate.ts";

/** The fixed seeds are 1 to this one. */
export const LAST_SEED = 200;

/** The fixed seeds: the even ones have faults. */
export function describeSeeds(what: string, hasFaults: boolean): void {
  const seeds = Array.from({ length: LAST_SEED }, (_, i) => i + 1).filter(
    (seed) => (seed % 2 === 0) === hasFaults,
  );
  describe(`simulated processes ${what}`, async () => {
    const load = await loadProduct(".");
    const runs = seeds.map((seed) => ({ seed }));
    const ended: Outcome[] = [];
    test.each(runs)(
      "seed $seed keeps its promises (npm run world -- --seed $seed --trace)",
      async ({ seed }) => {
        const outcome = await simulate(load, seed);
        ended.push(outcome);
        const { failure, counts } = outcome;
        expect(failure).toBe(null);
        // A run without callers, or without faults, would prove nothing.
        expect(counts.acquired).toBeGreaterThan(10);
        if (hasFaults) expect(counts.faults).toBeGreaterThan(3);
      },
    );

    // With a part of the seeds (`-t`), it says nothing.
    test.runIf(hasFaults)("each kind of fault has done something", () => {
      if (ended.length === seeds.length) expect(missing(ended)).toEqual([]);
    });
  });
}
