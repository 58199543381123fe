import fc from "fast-check";
import { expect, it } from "vitest";
import { Deadlocks } from "../../src/tools/ui/deadlocks.ts";
import { anyText } from "../support/any-text.ts";

// Notes of callers that wait, as the page reads them: any user of locks may write some, and Redis
// may be late with them.

/** What the next question is answered with, when it is let go. */
function reader() {
  let asked = 0;
  let answer: (reply: unknown) => void = () => {};
  let reply: unknown = null;
  const commandOn = (): Promise<unknown> => {
    asked++;
    return reply === null ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(reply);
  };
  const deadlocks = new Deadlocks({ commandOn } as unknown as ConstructorParameters<typeof Deadlocks>[0]);
  return {
    deadlocks,
    asked: () => asked,
    late: (one: unknown) => answer(one),
    now: (one: unknown) => {
      reply = one;
    },
  };
}

const NOW = 1_800_000_000_000_000;
const end = NOW / 1_000 + 30_000;
const member = (id: string, holds: string, waits: string): string =>
  `handoff:${waits} ${end} ${id} handoff:${waits} 0 ${NOW - 9e6} ${NOW - 1e6} 0 handoff:${holds}=${id}%3Ax=1=0`;
const CIRCLE = [member("c/1", "a", "b"), member("d/1", "b", "a")];

it("late notes count for no sample of the locks, and are not requested twice", async () => {
  const { deadlocks, asked, late, now } = reader();
  const since = performance.now();
  await deadlocks.refresh();
  expect(performance.now() - since).toBeLessThan(10_000);
  expect(deadlocks.trouble).toMatch(/were not read: Redis did not answer in time/);
  // The locks are being listed now, and some of them were seen before.
  late([NOW, CIRCLE]);
  await new Promise((soon) => setImmediate(soon));
  expect(deadlocks.trouble).toMatch(/in time/);
  expect(asked()).toBe(1);
  now([NOW, CIRCLE]);
  await deadlocks.refresh();
  expect([deadlocks.trouble, asked()]).toEqual([null, 2]);
});

it("any note is either read or left out, and the others are read", async () => {
  const { deadlocks, now } = reader();
  const words = fc.oneof(
    fc.string(),
    anyText(),
    fc.constantFrom("%", "=", ",", "handoff:", "0", "-1", "1e400", ""),
  );
  const spoilt = fc.tuple(fc.nat({ max: 8 }), words).map(([at, word]) => {
    const parts = (CIRCLE[0] ?? "").split(" ");
    parts[at] = word;
    return parts.join(" ");
  });
  const members = fc.array(fc.oneof(spoilt, words), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(members, async (some) => {
      now([NOW, [...some, ...CIRCLE]]);
      await deadlocks.refresh();
      expect(deadlocks.trouble).toBeNull();
      expect(deadlocks.among([])).toEqual([]);
    }),
    { seed: Date.now() & 0x7fffffff, numRuns: 500 },
  );
});
