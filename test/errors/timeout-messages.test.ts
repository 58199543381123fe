import { afterAll, describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../src/index.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

// What the error of a wait that is over says of the holder.

const parties = new Parties();
afterAll(parties.close);

const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe("LockTimeoutError says where the holder is", () => {
  it.for(["lock", "fairLock", "redissonLock", "spinLock"] as const)("this process: %s", async (kind) => {
    const { locks } = await parties.join();
    const lock = lockOf(locks, kind, freshName());
    await using held = await lock.lock();
    const error = await failure(lock.lock({ wait: 30 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({
      heldBy: "this process",
      message: expect.stringMatching(
        /was still held by this process \(pid \d+\) when `wait` \(30 ms\) was over: .*nest withLock\(\)/,
      ),
    });
    expect(held.held).toBe(true);
  });

  it("this process, of a multi-lock", async () => {
    const { locks } = await parties.join();
    const names = [freshName(), freshName()];
    await using held = await locks.lock(names[0] as string).lock();
    const error = await failure(locks.multiLock(names).lock({ wait: 30 }));
    expect(error).toMatchObject({
      heldBy: "this process",
      lockName: held.name,
      message: expect.stringContaining(
        `', one of 2 that this call wants together, was still held by this process (pid ${process.pid}) when`,
      ),
    });
  });

  it("this scope, which has lent it to another body", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    const errors = await lock.withLock(() =>
      Promise.all([
        failure(lock.withLock(() => until(() => false, { timeout: 100 }).catch(() => "done"))),
        failure(lock.withLock({ wait: 20 }, () => "never")),
      ]),
    );
    expect(errors).toMatchObject([
      "done",
      {
        heldBy: "this scope",
        message: expect.stringMatching(
          /was still held by this scope, for another body or with `reentrant: false`, when `wait` \(20 ms\) was over: concurrent bodies of one scope/,
        ),
      },
    ]);
  });

  it("another process", async () => {
    const [near, far] = await Promise.all([parties.join(), parties.join()]);
    const name = freshName();
    await using held = await far.locks.lock(name).lock();
    const error = await failure(near.locks.lock(name).lock({ wait: 20 }));
    expect(error).toMatchObject({
      heldBy: "somebody else",
      message: expect.stringMatching(/was still held by \S+:\d+ when `wait` \(20 ms\) was over: wait longer/),
    });
    expect(await failure(near.locks.lock(name).lock({ wait: 0 }))).toMatchObject({
      message: expect.stringMatching(/^Lock '\S+' is already held by \S+:\d+, and `wait` is 0\.$/),
    });
    expect(held.held).toBe(true);
  });
});
