// On a real Redis; in virtual time: test/world/directed/multi-lock-faults.test.ts.

import { afterEach, describe, expect, it } from "vitest";
import type { LockOptions } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { three } from "../support/multi-locks.ts";
import { runs, timed } from "../support/stage.ts";
import { MultiLockStage } from "./stage.ts";

// The commands for several locks at a server that refuses them, or is silent.

const REPLY_TIMEOUT = 1_000;
/** A third of what a command may take by default. */
const PROMPTLY = 5_000 / 3;
const stage = new MultiLockStage(REPLY_TIMEOUT);
const { look, gone, holders, scene } = stage;
const unavailable = { code: "LOCK_UNAVAILABLE" };

describe("a server that refuses", () => {
  afterEach(async () => {
    const { redis } = stage.far;
    await redis.config("SET", "min-replicas-to-write", "0");
  });

  it("every write: none is acquired, none is partly released", async () => {
    const { near, far } = stage;
    const [names, others] = [three(), three()];
    const lease = await near.locks.multiLock(names).lock();
    const before = await scene(names);
    await far.redis.config("SET", "min-replicas-to-write", "1");
    expect(await failure(near.locks.multiLock(others).tryLock())).toMatchObject({
      cause: { message: expect.stringContaining("NOREPLICAS") },
    });
    const error = await failure(lease.unlock());
    expect((error as AggregateError).errors).toMatchObject(
      names.map((lockName) => ({
        ...unavailable,
        lockName,
        cause: { message: expect.stringContaining("NOREPLICAS") },
      })),
    );
    expect([await scene(names), await holders(others)]).toEqual([before, ["", "", ""]]);
    await far.redis.config("SET", "min-replicas-to-write", "0");
    await gone([...names, ...others]); // tried again behind
  });

  it("because one key is of another type: none is acquired", async () => {
    const { near, far } = stage;
    const names = three();
    await far.redis.set(look(names[2]).keys.lock, "something else", "PX", 5_000);
    expect(String(await failure(near.locks.multiLock(names).tryLock()))).toContain("WRONGTYPE");
    expect(await far.redis.exists(look(names[0]).keys.lock, look(names[1]).keys.lock)).toBe(0);
    await far.redis.del(look(names[2]).keys.lock);
  });
});

describe("a server that is silent", () => {
  it("is reported in time, and what the command still acquired is given back", async () => {
    const names = three();
    const { near, proxy } = stage;
    proxy.freeze();
    const [error, waited] = await timed(failure(near.locks.multiLock(names).tryLock(200)));
    expect(error).toMatchObject(unavailable);
    expect(waited).toBeLessThan(3 * REPLY_TIMEOUT);
    proxy.thaw();
    await gone(names);
  });

  it("does not hold up an abort, or a close", async () => {
    const [names, others] = [three(), three()];
    const { proxy } = stage;
    const [first, second] = [await stage.join({ url: proxy.url }), await stage.join({ url: proxy.url })];
    proxy.freeze();
    const controller = new AbortController();
    const aborted = failure(first.locks.multiLock(names).lock({ signal: controller.signal }));
    const closed = failure(second.locks.multiLock(others).lock());
    controller.abort("enough");
    const closing = second.locks.close({ grace: 300 });
    const [[reason, error], waited] = await timed(Promise.all([aborted, closed]));
    expect([reason, error]).toMatchObject(["enough", { code: "CLIENT_CLOSED" }]);
    expect(waited).toBeLessThan(PROMPTLY);
    proxy.thaw();
    await closing;
    await gone([...names, ...others]);
  });

  /** Falls silent when what was held meanwhile is confirmed. */
  async function silentAtConfirmation(names: readonly [string, string, string], options: LockOptions) {
    const { far, proxy } = stage;
    const { locks } = await stage.join({ url: proxy.url });
    locks.on("error", () => {}); // renewals, which are not answered either
    const held = await far.locks.lock(names[2]).lock();
    const call = failure(locks.multiLock(names).lock({ lease: 10_000, ...options }));
    await look(names[2]).queued(1);
    let isReached = false;
    const confirming = new Promise<void>((reached) => {
      void proxy.dropCommand((command) => {
        if (isReached || !runs("renew")(command)) return false;
        proxy.freeze("commands"); // this one and what comes behind it
        isReached = true;
        reached();
        return false;
      });
    });
    await held.unlock();
    await confirming;
    return { call };
  }

  it("does not hold up an abort during a confirmation", async () => {
    const names = three();
    const controller = new AbortController();
    const { call } = await silentAtConfirmation(names, { signal: controller.signal });
    controller.abort("enough");
    const [reason, waited] = await timed(call);
    expect([reason, waited < PROMPTLY]).toEqual(["enough", true]);
    stage.proxy.thaw();
    await gone(names);
  });

  it("takes no longer than the call would wait, either", async () => {
    const names = three();
    const { call } = await silentAtConfirmation(names, { wait: 700 });
    const [error, waited] = await timed(call);
    expect(error).toMatchObject(unavailable);
    expect(waited).toBeLessThan(PROMPTLY);
    stage.proxy.thaw();
    await gone(names);
  });
});
