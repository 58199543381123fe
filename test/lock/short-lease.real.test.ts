// On a real Redis; in virtual time: test/world/directed/crowds.test.ts.

import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { lockOf } from "../support/permit.ts";
import { Stage, timed } from "../support/stage.ts";

// A lease that is over before Redis has answered cannot be given. For a moment that can happen to
// any caller; when it goes on the caller is told so, and the lock is not taken from the others for
// nothing.

const KINDS = ["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const;
const stage = new Stage();
const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);
const tooShort = (lease: number) => ({
  code: "LOCK_UNAVAILABLE",
  message: expect.stringMatching(
    new RegExp(
      `its lease of ${lease} ms was over before the caller could have it: Redis took \\S+ m?s to answer`,
    ),
  ),
});

/** How many scripts passed the proxy since it records. */
const sent = (): number =>
  stage.proxy.commands.filter(({ command }) => /^eval/.test(command[0] ?? "")).length;

describe("a lease that is shorter than two answers of Redis take", () => {
  // One way: an answer takes twice as long.
  it.for([...KINDS.map((kind) => [kind, 150] as const), ["lock", 60] as const])(
    "%s: lock() without end is refused, after a few commands: a lease of %d ms",
    async ([kind, lease]) => {
      const { near, far, lock, proxy } = stage;
      await (await lockOf(near.locks, kind, `${lock.name} warm`).lock()).unlock();
      proxy.delay(50);
      proxy.record();
      expect(await failure(lockOf(near.locks, kind, lock.name).lock({ lease }))).toMatchObject(
        tooShort(lease),
      );
      await delay(500);
      // some tries, a claim and a withdrawal for each; some were sent whole
      expect(sent()).toBeLessThanOrEqual(24);
      proxy.delay(0);
      await (await lockOf(far.locks, kind, lock.name).lock({ wait: 5_000 })).unlock();
    },
  );

  it.for(KINDS)("%s: tryLock() reports that too, and not that Redis did not answer", async (kind) => {
    const { near, lock, proxy } = stage;
    proxy.delay(50);
    expect(await failure(lockOf(near.locks, kind, lock.name).tryLock({ lease: 60 }))).toMatchObject(
      tooShort(60),
    );
    expect(await failure(lockOf(near.locks, kind, `${lock.name} too`).tryLock({ lease: 150 }))).toMatchObject(
      tooShort(150),
    );
  });

  it("all later waiters with such a lease are refused at once, and one with a longer lease gets the lock", async () => {
    const { near, lock, proxy } = stage;
    proxy.delay(50);
    const short = Array.from({ length: 20 }, () => failure(near.locks.lock(lock.name).lock({ lease: 60 })));
    const long = near.locks.lock(lock.name).lock({ lease: 5_000 });
    const [errors, took] = await timed(Promise.all(short));
    for (const error of errors) expect(error).toMatchObject(tooShort(60));
    expect(took).toBeLessThan(10_000); // one by one it would be a second and more for each
    await (await long).unlock();
  });

  it("several locks together are refused", async () => {
    const { near, lock, proxy } = stage;
    proxy.delay(50);
    const names = [`${lock.name} 1`, `${lock.name} 2`];
    proxy.record();
    // Where the answer took longer than the lease, they are taken one by one, and the lease begins
    // when all are held.
    const outcome = await failure(near.locks.multiLock(names).lock({ lease: 120 }));
    if (outcome instanceof Error)
      expect(outcome).toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining("lease of 120 ms"),
      });
    await delay(500);
    expect(sent()).toBeLessThanOrEqual(30);
  });

  it("one slow moment costs nothing: the next try has the lock", async () => {
    const { near, lock, proxy } = stage;
    await (await near.locks.lock(`${lock.name} warm`).lock()).unlock();
    proxy.delay(250);
    const waiting = near.locks.lock(lock.name).lock({ lease: 400 });
    setTimeout(() => proxy.delay(0), 300);
    const lease = await waiting;
    expect(lease.held).toBe(true);
    await lease.unlock();
  });
});
