import { expect, it } from "vitest";
import { withoutBits } from "../../src/redis/hold-ids.ts";

const HOLD = "00000012abcdefghijklm";
const CLIENT = "host-1:4711:0123456789abcdef";

it.each([
  ["a hold that is granted by message", `holdfast:client:${CLIENT}:${HOLD}`, `${CLIENT}:38`],
  ["with a prefix", `app:holdfast:client:${CLIENT}:${HOLD}`, `${CLIENT}:38`],
  ["of a client with a label", `holdfast:client:a%20b/${CLIENT}:${HOLD}`, `a%20b/${CLIENT}:38`],
  ["of a slot in Cluster", `holdfast:client:${CLIENT}:{2jk}:${HOLD}`, `${CLIENT}:38`],
  ["a hold that wakes by time", `${CLIENT}:${HOLD}`, `${CLIENT}:38`],
  [
    "Redisson's form",
    `12345678-1234-1234-1234-123456789abc:${HOLD}`,
    "12345678-1234-1234-1234-123456789abc:38",
  ],
])("the random bits are not shown: %s", (_, id, shown) => {
  expect(withoutBits(id)).toBe(shown);
});

it.each(["x", "a:", "1:", "holdfast:client:", "a/b.", `${CLIENT}:`])(
  "a text of another library stays as it is, and is checked once, however long: %j",
  (piece) => {
    const text = piece.repeat(100_000);
    const began = performance.now();
    expect(withoutBits(text)).toBe(text);
    // A pattern that tries every way to cut it would take hours.
    expect(performance.now() - began).toBeLessThan(5_000);
  },
);
