import { expect, it, onTestFinished } from "vitest";
import { LockLostError } from "../../src/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";

// The example of most articles: a lock of 10 s, and work that takes 11 s. Another process asks at
// 5 s and at 11 s.

const SECOND = 1_000;

function pair() {
  const one = createTestLocks();
  const other = one.test.another();
  onTestFinished(async () => {
    for (const locks of [one, other]) await locks.close({ grace: 0 });
  });
  return { one, other: other.lock("order:42"), mine: one.lock("order:42") };
}

it("with a lease of 10 s the other process has the lock at 11 s, and the first one knows", async () => {
  const { one, other, mine } = pair();
  const first = await mine.lock({ lease: 10 * SECOND });
  await one.test.advance(5 * SECOND);
  expect([first.held, await other.tryLock()]).toEqual([true, null]);
  await one.test.advance(6 * SECOND);
  expect([first.held, first.signal.reason]).toEqual([false, expect.any(LockLostError)]);
  const second = await other.tryLock();
  expect(second?.token).toBeGreaterThan(first.token);
  // The mistake of the articles: this would delete the lock of the second one.
  await expect(first.unlock()).rejects.toThrow(LockLostError);
  expect([second?.held, await mine.tryLock()]).toEqual([true, null]);
});

it("without a lease the first process has it at 11 s too, and until its work is done", async () => {
  const { one, other, mine } = pair();
  const first = await mine.lock();
  for (const seconds of [5, 6, 60]) {
    await one.test.advance(seconds * SECOND);
    expect([first.held, await other.tryLock()]).toEqual([true, null]);
  }
  await first.unlock();
  expect((await other.tryLock())?.held).toBe(true);
});
