import { afterEach, describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";

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
});
