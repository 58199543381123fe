import { describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { heldAndWaitedFor, refusals, refusedWith } from "./refusals.ts";

// Redis answers, and will not do what it is asked. While that lasts nothing is done by halves; then
// everything goes on.

const stage = new Stage();

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
});
