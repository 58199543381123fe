import { expect, it } from "vitest";
import type { Listed } from "../../src/index.ts";
import { headline } from "../../src/tools/ui/headline.ts";
import { Leaderless } from "../../src/tools/ui/leaderless.ts";
import { Tally } from "../../src/tools/ui/survey.ts";

const waitedFor = (kind: string, name: string, ms: number): Listed =>
  ({ kind, name, waiters: [{ id: "client:1:0:x", waitedFor: ms }], holder: {}, holders: [{}] }) as never;

const worstOf = (...locks: Listed[]) => {
  const tally = new Tally(new Leaderless());
  for (const lock of locks) tally.add(lock);
  const sight = { survey: tally.survey(1, false), old: null, restart: null };
  const { worst, longWaits } = headline(sight as never, [], ({ name }) => ({ name }) as never);
  return [worst?.name, longWaits];
};

it("the candidates of an election are no long wait, and hide none", () => {
  const candidates = waitedFor("election", "scheduler", 900_000);
  expect(worstOf(candidates)).toEqual([undefined, 0]);
  expect(worstOf(candidates, waitedFor("lock", "order:42", 70_000))).toEqual(["order:42", 1]);
});
