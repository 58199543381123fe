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

it("a lease that has just begun is as long as its age and its rest", () => {
  expect(lengths([0, 14, 346])).toEqual([360]);
  expect(lengths([0, 0.2, 29.8])).toEqual([30]);
  expect(lengths([0, 2, 28], [2, 4, 26])).toEqual([30, 30]);
});

it("the length of an old lease is unknown, because it may have been renewed", () => {
  expect(lengths([0, 900, 23])).toEqual([null]);
  expect(lengths([0, 240, 120])).toEqual([null]);
  expect(lengths([0, null, 12])).toEqual([null]);
});

it("an observed renewal gives the length, up to the time between two observations", () => {
  expect(lengths([0, 900, 21.5], [2, 902, 29])).toEqual([null, 31]);
  expect(lengths([0, null, 21.5], [2, null, 29])).toEqual([null, 31]);
  // Each further one tells it more closely.
  const seen = lengths([0, 900, 21.5], [2, 902, 29], [4, 904, 27], [10, 910, 21], [12, 912, 29.9]);
  expect(seen.at(-1)).toBe(31);
  // Looks that are far from each other say nothing of a short lease.
  expect(lengths([0, 900, 0.5], [2, 902, 0.9])).toEqual([null, null]);
});

it("a lease that the watchdog would have renewed by now is not renewed, and its length is as it appears", () => {
  expect(lengths([0, 10, 20], [8, 18, 12])).toEqual([null, null]);
  expect(lengths([0, 10, 20], [8, 18, 12], [12, 22, 8])).toEqual([null, null, 30]);
});

it("a lease that is extended to another length has that length", () => {
  expect(lengths([0, 1, 29], [2, 3, 59])).toEqual([30, 61]);
  const back = lengths([0, 1, 59], [40, 41, 19], [42, 43, 29], [52, 53, 19], [54, 55, 29]);
  expect(back.at(-1)).toBe(31);
});

type Look = [at: number, held: number, left: number];

/** Looks at one hold, as above. Returns for how many s it was not renewed, as it is known after each look. */
function unrenewed(...looks: Look[]): (number | null)[] {
  const known = new LeaseLengths();
  return looks.map(([at, held, left]) => {
    known.see([{ id: "web-1:1", heldFor: held * S, remaining: left * S }], at * S, at * S);
    const ms = known.unrenewed("web-1:1");
    return ms === null ? null : ms / S;
  });
}

it("a lease that was renewed again and again is not renewed any more when less than half of it is left", () => {
  const renewed: Look[] = [
    [0, 900, 21],
    [2, 902, 30],
    [10, 910, 22],
    [12, 912, 30],
  ];
  expect(unrenewed(...renewed, [24, 924, 18], [28, 928, 14], [40, 940, 2]).slice(-3)).toEqual([null, 16, 28]);
  // It is renewed late.
  expect(unrenewed(...renewed, [28, 928, 14], [30, 930, 30]).slice(-2)).toEqual([16, null]);
  // A single renewal may be a call's own extend().
  expect(unrenewed([0, 900, 21], [2, 902, 30], [24, 924, 8])).toEqual([null, null, null]);
  // A lease with a fixed time.
  expect(unrenewed([0, 1, 59], [30, 31, 29], [58, 59, 1])).toEqual([null, null, null]);
  // It was extended to another length, which may be fixed.
  expect(unrenewed(...renewed, [14, 914, 60], [50, 950, 24]).slice(-2)).toEqual([null, null]);
});

it("the last renewal is known once a look has seen one", () => {
  const known = new LeaseLengths();
  const looks: Look[] = [
    [0, 900, 21],
    [2, 902, 19],
    [4, 904, 30],
    [10, 910, 24],
    [16, 916, 29],
  ];
  const seen = looks.map(([at, held, left]) => {
    known.see([{ id: "web-1:1", heldFor: held * S, remaining: left * S }], at * S, at * S);
    return known.renewed("web-1:1");
  });
  expect(seen).toEqual([null, null, 0, 6 * S, 1 * S]);
});

it("a hold without an end has no length, and a hold that has gone is forgotten", () => {
  const known = new LeaseLengths();
  known.see([{ id: "a", heldFor: 5, remaining: Number.POSITIVE_INFINITY }], 0, 0);
  expect(known.of("a")).toBeNull();
  known.see([{ id: "b", heldFor: 0, remaining: 30_000 }], 0, 0);
  expect(known.of("b")).toBe(30_000);
  known.see([], 2_000, 2_000);
  expect(known.of("b")).toBeNull();
});
