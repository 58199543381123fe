import { afterEach, describe, expect, it } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { three } from "../support/multi-locks.ts";
import { MultiLockStage } from "./stage.ts";

// The commands for several locks at a server that refuses them for lack of memory or of a right. What
// other refusals and silence do is in test/world/directed/multi-lock-faults.test.ts.

type Three = ReturnType<typeof three>;
const stage = new MultiLockStage(5_000);
const { look, gone, holders } = stage;
const unavailable = { code: "LOCK_UNAVAILABLE" };

describe("a server that refuses", () => {
  afterEach(async () => {
    const { redis } = stage.far;
    await redis.config("SET", "maxmemory", "0");
    await redis.call("ACL", "SETUSER", "default", "+@all");
  });

  it("for lack of memory: none is acquired, and holds are released and handed on", async () => {
    const { near, far } = stage;
    // What is held comes first in the order, so that it is asked for before anything that there is
    // no room for.
    const [names, others] = [three(), three()].sort(([a], [b]) => (a < b ? -1 : 1)) as [Three, Three];
    const lease = await near.locks.multiLock(names).lock();
    const waiting = far.locks.lock(names[1]).lock();
    await look(names[1]).queued(1);
    await far.redis.config("SET", "maxmemory", "1");
    expect(await failure(near.locks.multiLock(others).tryLock())).toMatchObject({
      ...unavailable,
      cause: { message: expect.stringContaining("OOM") },
    });
    expect(await holders(others)).toEqual(["", "", ""]);
    // it is busy, whatever there is room for
    expect(await near.locks.multiLock([...names, ...others]).tryLock()).toBeNull();
    await lease.extend(40_000);
    await lease.unlock();
    const next = await waiting;
    await next.unlock();
    await far.redis.config("SET", "maxmemory", "0");
    const again = await near.locks.multiLock(others).tryLock();
    await again?.unlock();
    await gone([...names, ...others]);
  });

  it.each(["set", "del", "zpopmin", "publish"])(
    "for a missing right, %s: the error names it before anything is written",
    async (right) => {
      const { far } = stage;
      const names = three();
      await far.redis.call("ACL", "SETUSER", "default", `-${right}`);
      const { locks } = await stage.join();
      const error = await failure(locks.multiLock(names).tryLock());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right}\\b`));
      await far.redis.call("ACL", "SETUSER", "default", "+@all");
      expect(await holders(names)).toEqual(["", "", ""]);
    },
  );
});
