/** A seeded generator of numbers from 0 up to 1, for tests: mulberry32. `HOLDFAST_SEED=<seed>` repeats a run. */
export function seeded(): { readonly seed: number; next(): number } {
  const { HOLDFAST_SEED } = process.env;
  const seed = HOLDFAST_SEED ? Number(HOLDFAST_SEED) : Date.now() % 2 ** 31;
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { seed, next };
}
