import { seeded as numbers } from "../../tools/numbers.ts";

/** A seeded generator of numbers from 0 up to 1, for tests. `HOLDFAST_SEED=<seed>` repeats a run. */
export function seeded(): { readonly seed: number; next(): number } {
  const { HOLDFAST_SEED } = process.env;
  const seed = HOLDFAST_SEED ? Number(HOLDFAST_SEED) : Date.now() % 2 ** 31;
  return { seed, next: numbers(seed) };
}
