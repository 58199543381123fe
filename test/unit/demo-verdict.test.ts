import { expect, it } from "vitest";
import type { Result } from "../../demo/run.ts";
import { judge, READ_ON } from "../../demo/verdict.ts";

// What the demo says of its runs.

const run = (result: Partial<Result>): Result => ({
  strategy: "hand-off",
  stops: false,
  isFenced: false,
  sold: 200,
  stock: 0,
  seconds: 1,
  waits: [],
  sent: 0,
  charges: 0,
  refused: 0,
  executed: 0,
  tokens: [1, 2, 3],
  ...result,
});

it.each<[Partial<Result>, string, RegExp]>([
  [{}, "well", /^hand-off: all 200 pieces were sold, and none twice\.$/],
  [{ strategy: "none", sold: 600 }, "limit", /^none: oversold by 400: without a lock, workers read the same/],
  [{ stops: true, sold: 201 }, "limit", /^hand-off, a worker stopped: oversold by 1: the worker stood still/],
  [{ stops: true, isFenced: true, refused: 1 }, "well", /none twice\. The shop refused the late write/],
  [{ sold: 201 }, "broken", /sold 201 of 200, stock 0\. This should not happen/],
  [{ stops: true, isFenced: true, sold: 201 }, "broken", /This should not happen/],
  [{ tokens: [1, 3, 2] }, "broken", /This should not happen/],
  [{ stops: true, sold: 199, stock: 1, strategy: "optimistic" }, "broken", /This should not happen/],
])("of %j the demo says: %s", (result, is, text) => {
  const verdict = judge(run(result));
  expect(verdict.is).toBe(is);
  expect(`${verdict.run}: ${verdict.text}`).toMatch(text);
});

it("the demo's last line leads to fencing", () => {
  expect(READ_ON).toContain("docs/fencing.md");
});
