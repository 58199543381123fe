import { describe, it } from "vitest";
import { asks, breaks, dead, fault, forgot, type Held, held, isSound, type Line } from "./by-hand.ts";
import { GRACE } from "./checker/excuses.ts";
import type { Told } from "./history/events.ts";

// The same for results that callers share.

const KEEP = 1_000;

/** Runs, and its result is stored when it ends, which Redis confirms then. */
function ran(by: string, token: number, [from, to]: readonly [number, number], more: Held = {}): Line[] {
  const lines = held(by, "remember", token, [from, to], { at: from - 1, keep: KEEP, ...more });
  return lines.map(([at, , told]) => [
    at,
    by,
    told.is === "unlocked" && told.error === null ? { ...told, stored: token } : told,
  ]);
}

/** Its lease is over when its body ends. */
const unheld = (run: Line[]): Line[] =>
  run.map(([at, by, told]) => [at, by, told.is === "unlock" ? { ...told, held: false } : told]);

/** Asks, and gets the result of the first call of that worker. */
function got(
  by: string,
  token: number,
  value: string,
  [at, to]: readonly [number, number],
  more: Held & { stored?: number } = {},
): Line[] {
  const { stored = token, call = 1, ...asked } = more;
  const told: Told = { is: "got", call, token, value: `${value}#1`, stored };
  return [asks(at, by, { call, kind: "remember", ...asked }), [to, by, told]];
}

const forgets = (error: string | null = null): Line[] => [
  [30, "9.1", { is: "forgets", forget: 1, lock: "it" }],
  [40, "9.1", { is: "has forgotten", forget: 1, error }],
];

const first = ran("1.1", 5, [10, 20]);

it("runs of one name exclude each other, and have growing tokens", () => {
  isSound(...first, ...ran("2.1", 6, [2_000, 2_010]));
  breaks("one holder", ...ran("1.1", 5, [10, 20], { throws: true }), ...ran("2.1", 6, [15, 30]));
  breaks("growing tokens", ...first, ...ran("2.1", 4, [2_000, 2_010]));
});

describe("a result", () => {
  it("is what the body of the run with its token returned, for everybody the same", () => {
    isSound(...first, ...got("2.1", 5, "1.1", [5, 25]), ...got("3.1", 5, "1.1", [400, 410]));
    breaks("results of runs", ...first, ...got("2.1", 5, "4.1", [5, 25]));
    breaks("results of runs", ...first, ...got("2.1", 6, "1.1", [5, 25], { stored: 5 }));
    breaks("results of runs", ...first, ...got("2.1", 5, "1.1", [5, 15]));
  });

  it("is no throw, and of no other fingerprint", () => {
    const thrown = ran("1.1", 5, [10, 20], { throws: true, error: "Error: the body throws" });
    breaks("results of runs", ...thrown, ...got("2.1", 5, "1.1", [5, 25]));
    const one = ran("1.1", 5, [10, 20], { fingerprint: "one" });
    isSound(
      ...one,
      ...got("2.1", 5, "1.1", [5, 25], { fingerprint: "one" }),
      ...got("3.1", 5, "1.1", [6, 26]),
    );
    breaks("results of runs", ...one, ...got("2.1", 5, "1.1", [5, 25], { fingerprint: "other" }));
  });

  it("is stored once", () => {
    const again = [...first, ...got("2.1", 5, "1.1", [5, 25], { stored: 7 })];
    breaks("results are stored once", ...again);
    isSound(...again, forgot(24, 22));
  });

  it("is not older than one that a call had before", () => {
    const both = [...first, ...ran("2.1", 6, [2_000, 2_010], { call: 1 })];
    const late = { call: 2 };
    isSound(...both, ...got("3.1", 5, "1.1", [900, 2_020], late));
    const stale = got("3.1", 5, "1.1", [2_012, 2_020], late);
    breaks(["no older result", "results end"], ...both, ...stale);
    isSound(...both, ...stale, forgot(2_016, 2_015));
  });

  it("ends after `keep`, and when it is forgotten", () => {
    const late = got("2.1", 5, "1.1", [21 + KEEP * (1 + GRACE.rate) + GRACE.keep + 1, 2_000]);
    breaks("results end", ...first, ...late);
    isSound(...first, ...late, forgot(500, 490));
    // Its process believed in an older run, which Redis had forgotten.
    const beside = (by: string, end: number): Line[] => [
      ...unheld(ran(by, 4, [1, end], { call: 2, left: 2, error: "LOCK_LOST gone" })),
      ...first,
      ...late,
    ];
    isSound(...beside("2.1", 1_900), forgot(8, 7));
    breaks("results end", ...beside("2.1", 1_900), forgot(0.5, 0));
    breaks("results end", ...beside("2.1", 1_000), forgot(8, 7));
    breaks("results end", ...beside("3.1", 1_900), forgot(8, 7));
    const soon = got("2.1", 5, "1.1", [41, 50]);
    breaks("results end", ...first, ...soon, ...forgets());
    isSound(...first, ...soon, ...forgets("LOCK_UNAVAILABLE"));
    isSound(...first, ...got("2.1", 5, "1.1", [39, 50]), ...forgets());
    isSound(...ran("1.1", 5, [35, 36]), ...soon, ...forgets());
  });
});

describe("no body runs beside a result", () => {
  const next = ran("2.1", 6, [500, 510]);

  it("for `keep` after its end, unless it was lost or forgotten", () => {
    breaks("no run beside a result", ...first, ...next);
    const thrown = ran("3.1", 6, [500, 510], { throws: true, error: "Error" });
    breaks(Array(2).fill("no run beside a result"), ...first, ...thrown, ...ran("2.1", 7, [600, 610]));
    isSound(...first, ...next, forgot(300, 290));
    isSound(...first, ...next, ...forgets());
    isSound(...first, ...next, ...forgets().slice(0, 1), dead(31, "9.1"));
    // The network held the command up, or copied it.
    const both = [...ran("1.1", 5, [210, 220]), ...next, ...forgets()];
    breaks("no run beside a result", ...both);
    const healed: Line = [400, "director", { is: "healed", number: 1, kind: "cut connections" }];
    isSound(...both, fault(35, "cut connections"), healed);
    isSound(...first, ...ran("2.1", 6, [1_015, 1_020]));
    isSound(...ran("1.1", 5, [10, 20], { throws: true, error: "Error" }), ...next);
  });

  it("that may not be stored: by a run that lost its lease, or died, unless another call got it", () => {
    const lost = ran("1.1", 5, [10, 20], { error: "LOCK_LOST expired", left: 5 });
    isSound(...lost, ...next);
    isSound(...first.slice(0, 3), dead(21, "1.1"), ...next);
    breaks("no run beside a result", ...lost, ...got("3.1", 5, "1.1", [400, 410]), ...next);
    // It may have come late, when the next run was under way.
    const late = (left: number): Line[] => unheld(ran("1.1", 5, [10, 100], { left }));
    breaks("no run beside a result", ...late(99), ...ran("2.1", 6, [300, 510], { at: 90 }));
    isSound(...late(50), ...ran("2.1", 6, [300, 510], { at: 90 }));
  });

  it("for a caller that has waited for it, also after `keep`, while nothing is wrong", () => {
    const long = ran("1.1", 5, [10, 900], { keep: 0 });
    const waited = ran("2.1", 6, [3_000, 3_010], { at: 100 });
    breaks("no run beside a result", ...long, ...waited);
    isSound(...long, ...waited, fault(50, "cut connections"));
    isSound(...long, ...ran("2.1", 6, [3_000, 3_010], { at: 800 }));
    breaks("nobody starves", ...long, ...ran("2.1", 6, [16_000, 16_010], { at: 100 }));
  });
});
