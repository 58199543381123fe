import { describe, expect, it } from "vitest";
import { quorumLua } from "../src/scripts/lua.generated.ts";
import { failure } from "./contract/observe.ts";
import { QuorumStage, runsQuorum } from "./support/quorum-stage.ts";
import { timed } from "./support/stage.ts";
import { until } from "./support/until.ts";

// A waiter sleeps for the time of the holder that it has seen, here 30 or 60 s, unless a message wakes it.

const SOON = 5_000;

describe.each([3, 5])("%i masters", (count) => {
  const stage = new QuorumStage(count);
  const nodes = Array.from({ length: count }, (_, i) => i + 1);
  const listeners = async (node: number) =>
    Number((await stage.admin(node).pubsub("NUMSUB", `${stage.key()}:free`))[1]);
  const isHeard = async () => (await Promise.all(nodes.map(listeners))).every((heard) => heard === 1);

  it("a waiter that does not hear one node is woken by every word, until a majority is free", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(isHeard);
    stage.proxy(count).refuse(true);
    stage.proxy(count).cut("subscribers");
    await until(async () => (await listeners(count)) === 0);
    const [hold = ""] = ((await stage.admin(1).get(stage.key())) ?? "").split(" ");
    const channel = `${stage.key()}:free`;
    // As the release goes when it reaches one node after the other.
    const release = (node: number) =>
      stage
        .admin(node)
        .eval(quorumLua.release.lua, 2, stage.key(), stage.clock, hold, channel, `${lease.token}`);
    for (const proxy of stage.proxies) proxy.record();
    // So many words that the first try comes, and finds the lock held by all the others.
    const [majority, first] = [Math.floor(count / 2) + 1, Math.floor(count / 2)];
    for (let node = 1; node <= first; node++) await release(node);
    const isBack = () => stage.proxy(1).commands.some(({ command }) => runsQuorum("release")(command));
    await until(isBack);
    const [next, took] = await timed(
      (async () => {
        for (let node = majority; node <= count; node++) await release(node);
        return waiter;
      })(),
    );
    expect(took).toBeLessThan(SOON);
    await next.unlock();
  });
});

describe("three masters", () => {
  const stage = new QuorumStage(3);
  const listeners = async (node: number) =>
    Number((await stage.admin(node).pubsub("NUMSUB", `${stage.key()}:free`))[1]);

  it("a waiter that does not hear one node, and another that no release reaches, keep nobody from a majority", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(async () => (await Promise.all([1, 2, 3].map(listeners))).every((heard) => heard === 1));
    stage.proxy(3).refuse(true);
    stage.proxy(3).cut("subscribers");
    await until(async () => (await listeners(3)) === 0);
    const [hold = ""] = ((await stage.admin(1).get(stage.key())) ?? "").split(" ");
    const channel = `${stage.key()}:free`;
    const release = (node: number) =>
      stage
        .admin(node)
        .eval(quorumLua.release.lua, 2, stage.key(), stage.clock, hold, channel, `${lease.token}`);
    stage.proxy(2).record();
    await release(2);
    // The first try: held at the others.
    await until(() => stage.proxy(2).commands.some(({ command }) => runsQuorum("release")(command)));
    await release(3); // and node 1 has the key until its time is over
    const [next, took] = await timed(waiter);
    expect(took).toBeLessThan(SOON);
    await next.unlock();
    await failure(lease.unlock());
  });

  it("votes that were given up, and executed all the same, wake waiters when they are taken back", async () => {
    const [near, far] = [await stage.join(), await stage.join()];
    for (const { locks } of [near, far]) await locks.lock(stage.name).withLock(() => {});
    await until(async () => (await stage.holders()).every((holder) => holder === null));
    for (const node of [1, 2, 3]) await stage.admin(node).set(stage.key(), "somebody:1 1", "PX", 60_000);
    const waiter = far.locks.lock(stage.name).lock();
    await until(async () => {
      const heard = [1, 2, 3].map((node) => stage.admin(node).pubsub("NUMSUB", `${stage.key()}:free`));
      return (await Promise.all(heard)).every(([, count]) => count === 1);
    });
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
