import { expect, it, vi } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { Memory } from "../../src/tools/testing/memory.ts";
import { once } from "../../src/tools/testing/once.ts";

// The scripts of what runs once per interval, in memory. A test client's clock never goes back; Redis's may.

const { OWNER, GONE, RELEASED } = codes;
const HOUR = 3_600_000;
const KEY = ["turn"];

it.each([
  ["from the first call after it, for one interval", 0, HOUR],
  ["aligned, until the end of the next slot", 1, 1.5 * HOUR],
])("a finished turn stays taken %s when the clock is set back by a day", (_, aligned, left) => {
  let now = 1_700_000 * HOUR + HOUR / 2;
  vi.spyOn(Memory.prototype, "now", "get").mockImplementation(() => now * 1_000);
  try {
    const { begin, end } = once(new Memory());
    const asks = (hold: string) => begin(KEY, [hold, 30_000, HOUR, aligned, "again"]) as unknown[];
    const [code, , begun] = asks("first");
    expect(code).toBe(OWNER);
    expect(end(KEY, ["first", HOUR, aligned, begun as number])).toBe(RELEASED);
    now -= 24 * HOUR;
    expect(asks("second")).toEqual([GONE, now * 1_000, left]);
    now += left;
    expect(asks("third")[0]).toBe(OWNER);
  } finally {
    vi.restoreAllMocks();
  }
});
