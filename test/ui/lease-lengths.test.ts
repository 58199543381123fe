import { expect, it } from "vitest";
import { LeaseLengths } from "../../src/tools/ui/lease-lengths.ts";

// Redis has what is left of a lease, and not how long it is: what can be known of that, look by look.

const S = 1_000;
/**
 * Looks at one hold: [when, held for, left], in s. Returns its length in s, as it is known after
 * each look; null: it is not.
 */
function lengths(...looks: [at: number, held: number | null, left: number][]): (number | null)[] {
  const known = new LeaseLengths();
  return looks.map(([at, held, left]) => {
    known.see(
      [{ id: "web-1:1", heldFor: held === null ? null : held * S, remaining: left * S }],
      at * S,
      at * S,
    );
    const length = known.of("web-1:1");
    return length === null ? null : length / S;
  });
}

it("a lease that has just begun is as long as it has been held and what is left", () => {
  expect(lengths([0, 14, 346])).toEqual([360]);
  expect(lengths([0, 0.2, 29.8])).toEqual([30]);
  expect(lengths([0, 2, 28], [2, 4, 26])).toEqual([30, 30]);
});

it("of one that was taken long ago nothing is known: it may have been renewed", () => {
  expect(lengths([0, 900, 23])).toEqual([null]);
  expect(lengths([0, 240, 120])).toEqual([null]);
  expect(lengths([0, null, 12])).toEqual([null]);
});

it("a renewal that was seen tells it, up to the time between the looks", () => {
  expect(lengths([0, 900, 21.5], [2, 902, 29])).toEqual([null, 31]);
  expect(lengths([0, null, 21.5], [2, null, 29])).toEqual([null, 31]);
  // Each further one tells it more closely.
  const seen = lengths([0, 900, 21.5], [2, 902, 29], [4, 904, 27], [10, 910, 21], [12, 912, 29.9]);
  expect(seen.at(-1)).toBe(31);
  // Looks that are far from each other say nothing of a short lease.
  expect(lengths([0, 900, 0.5], [2, 902, 0.9])).toEqual([null, null]);
});

it("one that the watchdog would have renewed by now is not renewed: it is as long as it looks", () => {
  expect(lengths([0, 10, 20], [8, 18, 12])).toEqual([null, null]);
  expect(lengths([0, 10, 20], [8, 18, 12], [12, 22, 8])).toEqual([null, null, 30]);
});

it("one that is extended to another length has that", () => {
  expect(lengths([0, 1, 29], [2, 3, 59])).toEqual([30, 61]);
  const back = lengths([0, 1, 59], [40, 41, 19], [42, 43, 29], [52, 53, 19], [54, 55, 29]);
  expect(back.at(-1)).toBe(31);
});

it("a hold without an end has no length, and one that has gone is forgotten", () => {
  const known = new LeaseLengths();
  known.see([{ id: "a", heldFor: 5, remaining: Number.POSITIVE_INFINITY }], 0, 0);
  expect(known.of("a")).toBeNull();
  known.see([{ id: "b", heldFor: 0, remaining: 30_000 }], 0, 0);
  expect(known.of("b")).toBe(30_000);
  known.see([], 2_000, 2_000);
  expect(known.of("b")).toBeNull();
});
