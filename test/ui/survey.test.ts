import { expect, it, onTestFinished, vi } from "vitest";
import type { Listed } from "../../src/index.ts";
import { Leaderless } from "../../src/tools/ui/leaderless.ts";
import { inOrder } from "../../src/tools/ui/order.ts";
import { Tally } from "../../src/tools/ui/survey.ts";

const lock = (name: string, waitedFor: number | null, heldFor: number): Listed => {
  const holder = { heldFor, remaining: 30_000 - heldFor };
  const waiters = waitedFor === null ? [] : [{ id: "client:1:0:x", waitedFor }];
  return { kind: "lock", name, waiters, holder, holders: [holder], heldFor } as never;
};

it("locks that a long look read one after the other are ordered by when their waits and holds began", () => {
  let now = 1_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const tally = new Tally(new Leaderless());
  tally.add(lock("first", 500, 600));
  tally.add(lock("oldest", null, 900));
  now += 300;
  // It has waited for longer by now, and for less long than the first one.
  tally.add(lock("second", 700, 800));
  tally.add(lock("old", null, 1_000));
  const { locks } = tally.survey(1, false);
  const names = (sort: string) => inOrder(locks, sort).map(({ name }) => name);
  expect(names("")).toEqual(["first", "second", "oldest", "old"]);
  expect(names("-wait")).toEqual(["first", "second", "oldest", "old"]);
  expect(names("-held")).toEqual(["oldest", "old", "first", "second"]);
  expect(names("left")).toEqual(["oldest", "old", "first", "second"]);
});
