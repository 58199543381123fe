// On a real Redis; in virtual time: test/world/directed/busy-or-unavailable.test.ts.

import { describe, expect, it } from "vitest";
import { PASS_TIME } from "../../src/defaults.ts";
import { failure } from "../contract/observe.ts";
import { block } from "../support/block.ts";
import { listenersOf } from "../support/listeners.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { forget, isKnown, type Lockable, otherOf, parked, QUEUING, TRIERS, trierOf } from "./only-then.ts";

// A caller is told that another one holds the lock when that is so, and only then: not while Redis
// hangs, and not of a lock that is free, whatever the other callers of its client are doing just
// then.

const stage = new Stage();
const UNAVAILABLE = { code: "LOCK_UNAVAILABLE" };

describe.each(TRIERS)("%s", (kind) => {
  const near = (): Lockable => trierOf(stage.near.locks, kind, stage.lock.name);
  const far = (): Lockable => otherOf(stage.far.locks, kind, stage.lock.name);

  /** The other process has it, and a caller of this one waits for it. */
  async function waiting() {
    const held = await far().lock();
    const enough = new AbortController();
    const over = near()
      .lock({ signal: enough.signal })
      .catch(() => null);
    await parked(stage, kind);
    return { held, enough, over };
  }

  it("beside a caller that asks throws while Redis hangs", async () => {
    stage.proxy.freeze();
    const first = failure(near().lock({ wait: 100 }));
    const second = failure(near().tryLock());
    const third = failure(near().tryLock({ wait: 50 }));
    for (const call of [first, second, third]) expect(await call).toMatchObject(UNAVAILABLE);
  });

  it.each([
    ["", {}],
    [", also at the end of a short wait", { wait: 50 }],
  ])("beside a caller that waits throws while Redis hangs%s", async (_, options) => {
    const { held, enough, over } = await waiting();
    stage.proxy.freeze();
    expect(await failure(near().tryLock(options))).toMatchObject(UNAVAILABLE);
    enough.abort();
    expect(await over).toBeNull();
    stage.proxy.thaw();
    await held.unlock();
  });

  it("beside a waiting caller says busy while another process has it", async () => {
    const { held, over } = await waiting();
    expect(await near().tryLock()).toBeNull();
    expect(await near().tryLock({ wait: 20 })).toBeNull();
    await held.unlock();
    await (await over)?.unlock();
  });

  it("beside a waiting caller whose holder has crashed says busy only once that caller has it", async () => {
    const { held, over } = await waiting();
    await forget(stage, kind);
    const lease = await near().tryLock();
    expect(lease?.held ?? (await isKnown(stage, kind))).toBe(true);
    await lease?.unlock();
    await held.unlock().catch(() => {});
    await (await over)?.unlock();
  });

  it("does not say busy because of an expired lease of this process", async () => {
    if (kind === "election") return;
    const lease = await near().lock({ lease: 100 });
    block(200);
    const next = await near().tryLock();
    expect([lease.held, next?.held]).toEqual([false, true]);
    await next?.unlock();
  });
});

describe.each(QUEUING)("%s", (kind) => {
  const near = (): Lockable => trierOf(stage.near.locks, kind, stage.lock.name);
  const far = (): Lockable => otherOf(stage.far.locks, kind, stage.lock.name);

  it("throws while Redis hangs, also if the lock was handed to a caller here that has not received it yet", async () => {
    const { heard: messages } = listenersOf(stage.near.redis);
    await stage.warm(stage.near);
    const held = await far().lock();
    // Longer than the time for which it is handed on, so that it is claimed first.
    const waiting = near().lock({ lease: 20_000 });
    await parked(stage, kind);
    messages.length = 0;
    stage.proxy.partition("commands");
    await held.unlock();
    await until(() => messages.length > 0, { what: "the message that hands it on" });
    expect(await failure(near().tryLock())).toMatchObject(UNAVAILABLE);
    stage.proxy.thaw();
    await (await waiting).unlock();
  });

  it.skipIf(kind === "readLock")(
    "throws while Redis hangs, also if the lock is being handed to another process",
    async () => {
      await stage.warm(stage.near);
      const held = await near().lock();
      const others = far().lock();
      await parked(stage, kind);
      const enough = new AbortController();
      const own = near()
        .lock({ signal: enough.signal })
        .catch(() => null);
      // Longer than callers of this process come before those of another one.
      const since = performance.now();
      await until(() => performance.now() - since > 2 * PASS_TIME);
      stage.proxy.freeze();
      const unlocked = held.unlock().catch(() => {});
      expect(await failure(near().tryLock())).toMatchObject(UNAVAILABLE);
      enough.abort();
      stage.proxy.thaw();
      await Promise.all([unlocked, others.then((lease) => lease.unlock())]);
      await (await own)?.unlock();
    },
  );
});

it("tryLock() of a read lock and of its write lock says busy at once if callers of this process wait for both", async () => {
  const { read, write } = stage.near.locks.readWriteLock(stage.lock.name);
  const held = await stage.far.locks.readWriteLock(stage.lock.name).write.lock();
  const reading = read.lock();
  await parked(stage, "readLock");
  const writing = write.lock();
  await until(async () => (await write.inspect()).waiters?.length === 2, { what: "both to wait" });
  // Only the first of its places looks again by itself.
  for (const lock of [read, write, read, write]) expect(await lock.tryLock()).toBeNull();
  await held.unlock();
  await (await reading).unlock();
  await (await writing).unlock();
});

it("once() says that another call runs if Redis says so, and throws while Redis hangs", async () => {
  const options = { every: 60_000 };
  const begun = await stage.far.locks.runOnce(stage.lock.name, options, async () => {
    const beside = await stage.near.locks.runOnce(stage.lock.name, options, () => "ran");
    expect(beside).toMatchObject({ ran: false, running: true });
  });
  expect(begun.ran).toBe(true);
  const locks = (await stage.join({ url: stage.proxy.url, client: { replyTimeout: 600 } })).locks;
  stage.proxy.freeze();
  const calls = [1, 2].map(() => failure(locks.runOnce(stage.lock.name, options, () => "ran")));
  for (const call of calls) expect(await call).toMatchObject(UNAVAILABLE);
});
