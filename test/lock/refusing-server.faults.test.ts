import { describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { ALLOW_DEBUG } from "../support/server-pauses.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { heldAndWaitedFor, refusals, refusedWith } from "./refusals.ts";

// Redis answers, and will not do what it is asked. While that lasts nothing is done by halves; then
// everything goes on.

const stage = new Stage({ args: ALLOW_DEBUG });

describe.each(refusals(stage))("$says", ({ says, begin, end }) => {
  it("no new holder or place is accepted, and a busy lock is still reported as busy", async () => {
    const { near, far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(stage, 30_000);
    const other = freshName();
    await begin(far.redis);
    await expect(near.locks.lock(other).tryLock()).rejects.toMatchObject(refusedWith(says));
    await expect(near.locks.lock(other).lock()).rejects.toMatchObject(refusedWith(says));
    expect(await near.locks.lock(lock.name).tryLock()).toBeNull();
    await expect(near.locks.lock(lock.name).tryLock(1_000)).rejects.toMatchObject(refusedWith(says));
    await expect(near.locks.lock(lock.name).forceUnlock()).rejects.toMatchObject(refusedWith(says));
    expect(await far.redis.keys(`*${other}*`)).toEqual([]);
    expect([lease.held, (await lock.waiters()).length]).toEqual([true, 1]);
    await end(far.redis);
    await lease.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("a release is refused whole: unlock() rejects, and hands over when Redis writes again", async ({
    annotate,
  }) => {
    const { far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(stage, 30_000);
    const [holder, waiters] = [await lock.holder(), await lock.waiters()];
    await begin(far.redis);
    await expect(lease.unlock()).rejects.toMatchObject(refusedWith(says));
    expect([await lock.holder(), await lock.waiters()]).toEqual([holder, waiters]);
    await end(far.redis);
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms later`);
    expect(waited).toBeLessThan(8_000); // tried again every 2 s or sooner; the lease would be 30 s
    await next.unlock();
    await lock.gone();
  });
});

describe("LOADING", () => {
  it("calls fail with typed errors, holders keep their locks, and waiters get the lock afterwards", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(stage, 30_000);
    const [holder, waiters] = [await lock.holder(), await lock.waiters()];
    const admin = await stage.join();
    for (let i = 0; i < 300; i++) await admin.redis.set(`ballast:${i}`, "x".repeat(4_096), "EX", 60);
    await admin.redis.config("SET", "rdbcompression", "no");
    await admin.redis.config("SET", "loading-process-events-interval-bytes", "4096");
    await admin.redis.config("SET", "key-load-delay", "5000"); // µs for each key
    const loaded = timed(admin.redis.call("DEBUG", "RELOAD"));
    await expect(
      until(() => near.locks.lock(freshName()).withLock(() => false), { what: "Redis to load" }),
    ).rejects.toMatchObject(refusedWith("LOADING"));
    await expect(near.locks.lock(lock.name).lock({ wait: 300 })).rejects.toMatchObject(
      refusedWith("LOADING"),
    );
    await annotate(`loading for ${(await loaded)[1]} ms`);
    expect([await lock.holder(), await lock.waiters()]).toEqual([holder, waiters]);
    await lease.unlock();
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms after the unlock`);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.unlock();
    await far.redis.flushall();
  });
});
