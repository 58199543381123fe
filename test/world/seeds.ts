import { describe, expect, test } from "vitest";
import { loadProduct } from "./product.ts";
import { simulate } from "./simulate.ts";

const LAST = 200;

/** The fixed seeds: the even ones have faults. */
export function describeSeeds(what: string, hasFaults: boolean): void {
  const seeds = Array.from({ length: LAST }, (_, i) => i + 1).filter(
    (seed) => (seed % 2 === 0) === hasFaults,
  );
  describe(`simulated processes ${what}`, async () => {
    const load = await loadProduct(".");
    const runs = seeds.map((seed) => ({ seed }));
    test.each(runs)(
      "seed $seed keeps its promises (npm run world -- --seed $seed --trace)",
      async ({ seed }) => {
        const { failure, counts } = await simulate(load, seed);
        expect(failure).toBe(null);
        // A run without callers, or without faults, would prove nothing.
        expect(counts.acquired).toBeGreaterThan(10);
        if (hasFaults) expect(counts.faults).toBeGreaterThan(3);
      },
    );
  });
}
