import { expect, it } from "vitest";
import type { Listed } from "../../src/api/list.ts";
import { OldHoldFinder } from "../../src/tools/ui/old-hold.ts";
import { inOrder } from "../../src/tools/ui/order.ts";
import type { Seen } from "../../src/tools/ui/survey.ts";

const MIN = 60_000;
const lock = (name: string, heldFor: number | null, more: object = {}): Seen => {
  const holder = heldFor === null ? null : { id: name, label: null, host: name, heldFor, remaining: 5 };
  return {
    kind: "lock",
    name,
    heldFor,
    holder,
    holders: [],
    waiters: [],
    longest: null,
    kept: false,
    ...more,
  } as never;
};
const ages = (...all: number[]) => all.map((age, i) => lock(String(i), age));

const oldHold = (locks: readonly Listed[]) => {
  const found = new OldHoldFinder().see(locks);
  return found && { lock: found.locks[0], usual: found.usual };
};

it("a holder is far older than usual: ten minutes, and ten times the median hold", () => {
  const found = oldHold(ages(5_000, 10 * MIN, 1_000, 2_000, 4_000));
  expect([found?.lock?.name, found?.usual]).toEqual(["1", 4_000]);
  expect(oldHold(ages(5_000, 10 * MIN - 1, 1_000, 2_000, 4_000))).toBeNull();
  expect(oldHold(ages(60 * MIN, 7 * MIN, 7 * MIN, 5 * MIN, 1_000))).toBeNull();
  // Four holds say nothing of what is usual.
  expect(oldHold(ages(10 * MIN, 1_000, 2_000, 4_000))).toBeNull();
});

it("an old holder stays one until its hold ends, however many short holds there are beside it", () => {
  const finder = new OldHoldFinder();
  const names = (...others: number[]) => {
    const found = finder.see([lock("old", 12 * MIN), ...ages(...others)]);
    return found && [found.locks.map(({ name }) => name).join(), found.usual];
  };
  // Too few holds, before it was found.
  expect(names(1_000, 2_000)).toBeNull();
  expect(names(1_000, 2_000, 3_000, 4_000)).toEqual(["old", 3_000]);
  expect(names()).toEqual(["old", 3_000]);
  expect(names(1_000)).toEqual(["old", 3_000]);
  // The median wobbles around a tenth of its age.
  expect(names(MIN, 2 * MIN, 2 * MIN, 2 * MIN)).toEqual(["old", 2 * MIN]);
  expect(names(3 * MIN, 3 * MIN, 3 * MIN, 3 * MIN)).toBeNull();
  expect(finder.see(ages(1_000))).toBeNull();
});

it("leaders and cached locks are meant to stay, and free ones have no age", () => {
  const usual = ages(1_000, 2_000, 3_000, 4_000, 5_000);
  const others = [
    lock("leader", 999 * MIN, { kind: "election" }),
    lock("cached", 999 * MIN, { kept: true }),
    lock("free", null),
  ];
  expect(oldHold([...usual, ...others])).toBeNull();
  expect(oldHold([...usual, ...others, lock("old", 20 * MIN)])?.lock?.name).toBe("old");
});

it("locks are sorted by a column either way, those without a value last; what is no column sorts nothing", () => {
  const waiter = (waitedFor: number) => ({
    waiters: [{ id: "client:1:0:x", waitedFor }],
    longest: waitedFor,
  });
  const all = [lock("b", 5, waiter(7)), lock("c", null), lock("a", 9), lock("d", 5, waiter(9))];
  const names = (sort: string) =>
    inOrder(all, sort)
      .map(({ name }) => name)
      .join("");
  expect([names("name"), names("-name")]).toEqual(["abcd", "dcba"]);
  expect([names("held"), names("-held")]).toEqual(["bdac", "abdc"]);
  expect([names("wait"), names("-wait")]).toEqual(["bdca", "dbca"]);
  expect([names("holder"), names("-holder")]).toEqual(["abdc", "dbac"]);
  for (const sort of ["", "constructor", "--name", "-", "name desc"]) expect(names(sort)).toBe("bcad");
});
