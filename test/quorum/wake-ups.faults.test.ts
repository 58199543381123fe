import { describe, expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A waiter sleeps for the time of the holder that it has seen, here 30 or 60 s, unless a message wakes it.

const SOON = 5_000;

describe.each([3, 5])("%i masters", (count) => {
  const stage = new QuorumStage(count);

  it("a waiter that cannot receive one node's messages is woken by every other node, until a majority is free", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(() => stage.isHeard());
    stage.proxy(count).refuse(true);
    stage.proxy(count).cut("subscribers");
    await until(async () => (await stage.listeners(count)) === 0);
    const hold = (await stage.holders())[0] ?? "";
    for (const proxy of stage.proxies) proxy.record();
    // So many words that the first try comes, and finds the lock held by all the others.
    const [majority, first] = [Math.floor(count / 2) + 1, Math.floor(count / 2)];
    for (let node = 1; node <= first; node++) await stage.releaseAt(node, hold, lease);
    const isBack = () => stage.proxy(1).commands.some(({ command }) => runsQuorum("release")(command));
    await until(isBack);
    const [next, took] = await timed(
      (async () => {
        for (let node = majority; node <= count; node++) await stage.releaseAt(node, hold, lease);
        return waiter;
      })(),
    );
    expect(took).toBeLessThan(SOON);
    await next.unlock();
  });
});

describe("three masters", () => {
  const stage = new QuorumStage(3);

  it("a waiter that cannot receive one node's messages, and one that no release reaches, keep no caller from a majority", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(() => stage.isHeard());
    stage.proxy(3).refuse(true);
    stage.proxy(3).cut("subscribers");
    await until(async () => (await stage.listeners(3)) === 0);
    const hold = (await stage.holders())[0] ?? "";
    stage.proxy(2).record();
    await stage.releaseAt(2, hold, lease);
    // The first try: held at the others.
    await until(() => stage.proxy(2).commands.some(({ command }) => runsQuorum("release")(command)));
    await stage.releaseAt(3, hold, lease); // and node 1 has the key until its time is over
    const [next, took] = await timed(waiter);
    expect(took).toBeLessThan(SOON);
    await next.unlock();
    await failure(lease.unlock());
  });

  it("abandoned votes that were still executed wake waiters when they are taken back", async () => {
    const [near, far] = [await stage.join(), await stage.join()];
    await stage.warm(near, far);
    for (const node of [1, 2, 3]) await stage.admin(node).set(stage.key(), "somebody:1 1", "PX", 60_000);
    const waiter = far.locks.lock(stage.name).lock();
    await until(() => stage.isHeard());
    // The attempt after the subscription is answered when one of a later connection is.
    await far.locks.lock(stage.name).isLocked();
    for (const node of [2, 3]) await stage.admin(node).del(stage.key());
    stage.server(2).suspend();
    // Held at node 1, granted at node 3, given up at node 2.
    expect(await near.locks.lock(stage.name).tryLock()).toBe(null);
    stage.server(2).resume();
    const [lease, took] = await timed(waiter);
    expect(took).toBeLessThan(SOON);
    await lease.unlock();
    await stage.admin(1).del(stage.key());
  });
});
