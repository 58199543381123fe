import { describe, expect, it } from "vitest";
import { register } from "./checker/exclusion.ts";
import { tellStory } from "./checker/tell-story.ts";
import type { Event, LockKind, Told } from "./history/events.ts";

// Claims on one monotonic clock, in ms: overlapping ones are a proof, whatever tokens and deadlines say.

type Line = [at: number, by: string, told: Told];

/** Claims at these times; asks at the first of them. */
function claims(by: string, times: readonly number[], kind: LockKind = "lock", units?: number): Line[] {
  const [first = 0, ...rest] = times;
  const last = rest.pop() ?? first;
  const seen = rest.map(
    (at): Line => [at, by, { is: "seen", call: 1, after: "a while", held: true, left: 1 }],
  );
  return [
    [first, by, { is: "ask", call: 1, lock: "it", kind, wait: null, how: "", units }],
    [first, by, { is: "lease", call: 1, token: 5, left: 1, held: true }],
    ...seen,
    [last, by, { is: "unlock", call: 1, held: true }],
  ];
}

const found = (...lines: Line[]): string[] => {
  const events = lines.map(([at, by, told]) => ({ at: at * 1_000, by, ...told }) as Event);
  return register(tellStory(events.sort((one, other) => one.at - other.at))).map(({ what }) => what);
};

describe("claims of a lock", () => {
  it("one after the other prove nothing, also in the same microsecond", () => {
    expect(found(...claims("1.1", [10, 20]), ...claims("2.1", [20, 30]))).toEqual([]);
  });

  it("that overlap are told with both stretches", () => {
    expect(found(...claims("1.1", [10, 20]), ...claims("2.1", [19, 30]))).toEqual([
      "claims of it overlap for 1.000 ms on the monotonic clock, in µs: 1.1#1 from 10000 to 20000, 2.1#1 from 19000 to 30000",
    ]);
    expect(found(...claims("1.1", [10, 15, 20]), ...claims("2.1", [12]))).toHaveLength(1);
  });

  it("count from the first time to the last at which the lease said 'held', and no longer", () => {
    const silent: Line[] = claims("1.1", [10, 20]).map(([at, by, told]) =>
      told.is === "unlock" ? [at, by, { ...told, held: false }] : [at, by, told],
    );
    expect(found(...silent, ...claims("2.1", [15, 30]))).toEqual([]);
    const renewed: Line = [18, "1.1", { is: "seen", call: 1, after: "a renewal", held: true, left: 10_000 }];
    expect(found(...silent, renewed, ...claims("2.1", [15, 30]))).toEqual([]);
  });

  it("may overlap in what a server has forgotten, until its leases are over", () => {
    const forgot: Line = [15, "director", { is: "forgot", since: 14_000, from: 1, to: 2, what: "test" }];
    expect(found(...claims("1.1", [10, 40]), forgot, ...claims("2.1", [30, 35]))).toEqual([]);
    expect(found(...claims("1.1", [10, 9_000]), forgot, ...claims("2.1", [8_000, 8_500]))).toHaveLength(1);
  });
});

it("readers claim together, and no writer beside them", () => {
  const read = claims("1.1", [10, 30], "readLock");
  expect(found(...read, ...claims("2.1", [20, 40], "readLock"))).toEqual([]);
  expect(found(...read, ...claims("2.1", [20, 40], "writeLock"))).toHaveLength(1);
});

it("permits are claimed up to their number", () => {
  const two = claims("1.1", [10, 30], "permit", 2);
  expect(found(...two, ...claims("2.1", [20, 40], "permit", 1))).toEqual([]);
  expect(found(...two, ...claims("2.1", [20, 40], "permit", 2))).toHaveLength(1);
});
