import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { introOf } from "../../demo/intro.ts";
import { readArguments, USAGE } from "../../demo/plans.ts";
import type { Result } from "../../demo/run.ts";
import { wrap } from "../../demo/terminal.ts";
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
  deleted: 0,
  left: null,
  ...result,
});

it.each<[Partial<Result>, string, RegExp]>([
  [{}, "well", /^All 200 pieces were sold, and none twice: one caller was inside at a time/],
  [{ strategy: "none", sold: 600 }, "damage", /^Oversold by 400: processes read the same stock/],
  [{ strategy: "none" }, "missed", /did not happen this time/],
  [{ stops: true, sold: 201 }, "limit", /^Oversold by 1: the process stood still/],
  [{ stops: true }, "missed", /did not happen this time/],
  [{ stops: true, isFenced: true, refused: 1 }, "well", /the shop refused the late write/],
  [{ sold: 201 }, "broken", /Sold 201 of 200, stock 0\. This should not happen/],
  [{ stops: true, isFenced: true, sold: 201 }, "broken", /This should not happen/],
  [{ tokens: [1, 3, 2] }, "broken", /a token was not larger/],
  [{ stops: true, sold: 199, stock: 1, strategy: "optimistic" }, "broken", /This should not happen/],
  [{ strategy: "get-del", sold: 201, deleted: 1 }, "damage", /^Oversold by 1: .*DEL deleted it, so the next/],
  [{ strategy: "get-del", deleted: 2 }, "missed", /did not happen this time/],
  [
    { strategy: "no-owner", sold: 209, deleted: 1 },
    "damage",
    /^Oversold by 9: .*deleted the lock of another/,
  ],
  [{ strategy: "no-owner", sold: 201 }, "damage", /not by a late DEL: .* busy machine/],
  [
    { strategy: "setnx-expire", sold: 31, stock: 169, left: { ttl: -1, sold: 0 } },
    "damage",
    /^Nobody can sell any more, 169 pieces are left/,
  ],
  [{ strategy: "setnx-expire", left: { ttl: -1, sold: 3 } }, "missed", /did not happen this time/],
  [{ strategy: "setnx-expire", left: { ttl: 400, sold: 0 } }, "missed", /did not happen this time/],
])("of %j the demo says: %s", (result, is, text) => {
  const verdict = judge(run(result));
  expect(verdict.is).toBe(is);
  expect(verdict.text).toMatch(text);
});

it("every run of --strategy all has a sentence that says what the strategy does", () => {
  const { plans = [] } = readArguments(["--strategy", "all"]) ?? {};
  expect(plans).toHaveLength(22);
  expect(new Set(plans.map(introOf)).size).toBeGreaterThan(11);
});

it("the demo ends with at most four links, to pages that exist", () => {
  expect(READ_ON.length).toBeLessThanOrEqual(4);
  for (const [path] of READ_ON)
    expect(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")).toMatch(/^# /);
});

it("the demo's text fits on 80 columns", () => {
  const lines = wrap("word ".repeat(60).trim(), "    ", "  ✗ ");
  expect(lines.join(" ").replace(/[ ✗]+/g, " ").trim()).toBe("word ".repeat(60).trim());
  for (const line of [...lines, ...USAGE.split("\n")]) expect(line.length).toBeLessThan(80);
});

it.each([
  [["--driver", "redis"], /--driver must be ioredis or node-redis/],
  [["--strategy", "setnx"], /--strategy must be none, .*setnx-expire/],
  [["--ui", "--driver", "ioredis"], /--ui has no runs/],
])("the demo refuses %j", (args, why) => {
  expect(() => readArguments(args)).toThrow(why);
});
