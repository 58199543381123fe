import { expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { onceLua } from "../../src/redis/lua.generated.ts";
import { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";

// The scripts of `runOnce` on a Redis whose clock is set back: a real one cannot do that.

const { OWNER, GONE, RELEASED } = codes;
const HOUR = 3_600_000;

it.each([
  ["from the first call after it, for one interval", "0", HOUR],
  ["aligned, until the end of the next slot", "1", 1.5 * HOUR],
])("a finished turn stays taken %s when the clock is set back by a day", (_, aligned, left) => {
  let now = 1_700_000 * HOUR + HOUR / 2;
  const redis = new MemoryRedis(() => now * 1_000);
  const run = (name: keyof typeof onceLua, ...argv: (string | number)[]) =>
    redis.eval(onceLua[name].lua, ["turn"], argv.map(String));
  const begin = (hold: string) =>
    run("begin", hold, 30_000, HOUR, aligned, "again", now * 1_000 + 1) as unknown[];
  const [code, , begun] = begin("first");
  expect(code).toBe(OWNER);
  expect(run("end", "first", HOUR, aligned, String(begun))).toBe(RELEASED);
  now -= 24 * HOUR;
  expect(begin("second")).toEqual([GONE, now * 1_000, left]);
  now += left;
  expect(begin("third")[0]).toBe(OWNER);
});
