import { afterEach, describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis has no memory left and evicts nothing: it refuses commands that may need some, unless their
// script has written already.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });
const full = () => stage.far.redis.config("SET", "maxmemory", "1");
const refused = { code: "LOCK_UNAVAILABLE", cause: { message: expect.stringContaining("OOM") } };
afterEach(async () => {
  await stage.far.redis.config("SET", "maxmemory", "0");
});

describe("a full server", () => {
  it("hands over a lock at its unlock, and refuses a new caller, without leaving anything in Redis", async () => {
    const { near, far, lock } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    await full();
    await held.unlock();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect(lease.token).toBeGreaterThan(held.token);
    const other = freshName();
    await expect(far.locks.lock(other).lock()).rejects.toMatchObject(refused);
    await expect(far.locks.lock(lock.name).lock({ wait: 1_000 })).rejects.toMatchObject(refused);
    expect(await far.redis.keys(`holdfast:{${other}}*`)).toEqual([]);
    expect(await lock.waiters()).toEqual([]);
    await lease.unlock();
    expect(await near.locks.lock(lock.name).isLocked()).toBe(false);
  });

  it("refuses a new caller of a free or busy lock, keeps nothing of its try, and grants the lock once there is room", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const held = await far.locks.lock(lock.name).lock();
    const other = freshName();
    await full();
    await expect(near.locks.lock(other).tryLock()).rejects.toMatchObject(refused);
    expect(await near.locks.lock(lock.name).tryLock()).toBeNull(); // it is busy, whatever Redis has room for
    await expect(near.locks.lock(lock.name).tryLock(1_000)).rejects.toMatchObject(refused);
    const patient = near.locks
      .fairLock(lock.name)
      .lock()
      .catch((error: unknown) => error);
    expect(await patient).toMatchObject(refused); // its first command asked for a place
    expect([await lock.waiters(), await far.redis.keys(`*${other}*`)]).toEqual([[], []]);
    await far.redis.config("SET", "maxmemory", "0");
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    await held.unlock();
    await (await waiting).unlock();
    await until(async () => (await near.locks.lock(other).tryLock())?.unlock().then(() => true));
    await lock.gone();
  });
});
