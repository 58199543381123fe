import { expect, it, onTestFinished, vi } from "vitest";
import type { Listed } from "../../src/index.ts";
import { Leaderless } from "../../src/tools/ui/leaderless.ts";
import { inOrder } from "../../src/tools/ui/order.ts";
import { Tally } from "../../src/tools/ui/survey.ts";

const lock = (name: string, waitedFor: number | null, heldFor: number): Listed => {
  const holder = { heldFor, remaining: 20_000 };
  const waiters = waitedFor === null ? [] : [{ id: "client:1:0:x", waitedFor }];
  return { kind: "lock", name, waiters, holder, holders: [holder], heldFor } as never;
};

it("locks that a long look reads one after the other have their times as of its end", () => {
  let now = 1_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const tally = new Tally(new Leaderless());
  tally.add(lock("first", 500, 600));
  tally.add(lock("oldest", null, 900));
  now += 300;
  // It had waited for longer when it was read, and began to wait later.
  tally.add(lock("second", 700, 800));
  tally.add(lock("old", null, 1_000));
  now += 50;
  const { locks, at } = tally.survey(1, false);
  expect(at).toBe(now);
  expect(locks.map(({ name, longest, holder }) => [name, longest, holder?.heldFor])).toEqual([
    ["first", 850, 950],
    ["second", 750, 850],
    ["oldest", null, 1_250],
    ["old", null, 1_050],
  ]);
  expect(locks.map(({ holder, heldFor }) => holder?.heldFor === heldFor)).not.toContain(false);
  expect(locks[0]?.waiters?.[0]?.waitedFor).toBe(850);
  expect(inOrder(locks, "-held").map(({ name }) => name)).toEqual(["oldest", "old", "first", "second"]);
});
