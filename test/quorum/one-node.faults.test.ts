import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { freePort } from "../../tools/redis/probe.ts";
import { failure, lossOf } from "../contract/observe.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// What becomes of one node of three.

describe("a node of three", () => {
  const stage = new QuorumStage(3);
  /** A lease is given when a majority has voted; the last vote may come later. */
  const everywhere = () => until(async () => !(await stage.holders()).includes(null));

  it("that lost the key acquires it again; if two lose it at once the lease is lost", async () => {
    const { locks } = await stage.join({ leaseTime: 600 });
    const lease = await locks.lock(stage.name).lock();
    await everywhere();
    await stage.admin(3).del(stage.key());
    await everywhere();
    expect(lease.held).toBe(true);
    for (const node of [2, 3]) await stage.admin(node).del(stage.key());
    expect(await lossOf(lease.signal)).toBe("gone");
    await failure(lease.unlock());
    await stage.free();
  });

  it("that is slow is waited for if the others cannot decide", async () => {
    const near = await stage.join({ nodeTimeout: 5_000 }, "proxies");
    await stage.warm(near);
    await stage.server(1).kill();
    await until(() => near.nodes[0]?.status !== "ready");
    stage.proxy(2).delay(150);
    const [lease, took] = await timed(near.locks.lock(stage.name).lock());
    expect(took).toBeGreaterThanOrEqual(150);
    expect(took).toBeLessThan(4_000);
    expect(lease.remaining).toBeLessThan(30_000 * 0.99 - 150); // counted from the sending
    stage.proxy(2).delay(0);
    await lease.unlock();
  });

  it("that takes the lease's whole time to vote never makes a lease", async () => {
    const near = await stage.join({ nodeTimeout: 5_000 }, "proxies");
    const far = await stage.join();
    await stage.warm(near);
    // Each round trip fits into the lease; votes that differ need two of them.
    for (const node of [1, 2, 3])
      await stage.admin(node).set(stage.clock, `${(Date.now() + node * 60_000) * 1_000}`);
    for (const node of [2, 3]) stage.proxy(node).delay(90);
    const error = await failure(near.locks.lock(stage.name).tryLock(2_000, 300));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toContain("the votes took longer than the lease");
    for (const node of [2, 3]) stage.proxy(node).delay(0);
    await (await far.locks.lock(stage.name).lock({ wait: 2_000 })).unlock();
    await stage.free();
  });

  it("that grants late, after the last waiter left, has its grant taken back", async () => {
    const near = await stage.join({}, "proxies");
    // Every node has introduced itself: one that has not is asked for no vote, and has nothing to take back.
    await near.locks.lock(stage.name).withLock(() => until(() => stage.isEverywhere()));
    for (const proxy of stage.proxies) proxy.partition("commands");
    const error = await failure(near.locks.lock(stage.name).tryLock());
    expect(error).toBeInstanceOf(LockUnavailableError);
    const released = stage.proxies.map((proxy) => {
      proxy.record();
      proxy.thaw();
      return proxy;
    });
    await until(() =>
      released.every(({ commands }) => commands.some(({ command }) => runsQuorum("release")(command))),
    );
    await stage.free();
  });

  it("that hung does not vote for callers that have given up: the next one is not delayed", async () => {
    const [near, far] = [await stage.join(), await stage.join()];
    await stage.warm(near, far);
    for (const node of [2, 3]) stage.server(node).suspend();
    const start = performance.now();
    while (performance.now() - start < 1_000) await failure(near.locks.lock(stage.name).tryLock());
    for (const node of [2, 3]) stage.server(node).resume();
    // Votes that were executed would go when they are taken back, at some time in the next second.
    const back = performance.now();
    while (performance.now() - back < 100) expect((await stage.holders()).slice(1)).toEqual([null, null]);
    await (await until(() => far.locks.lock(stage.name).tryLock())).unlock();
    await stage.free();
  });

  it("that answers yes after a decided no has its vote taken back", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 2_000 }, "proxies"), await stage.join()];
    await stage.warm(near);
    const lease = await far.locks.lock(stage.name).lock();
    await everywhere();
    for (const ms of [31_000, 32_000]) await lease.extend(ms); // behind what made a late one count
    await stage.admin(3).del(stage.key()); // it will say yes
    stage.proxy(3).record();
    stage.proxy(3).delay(300);
    const [answer, took] = await timedAwake(near.locks.lock(stage.name).tryLock());
    expect([answer, took < 200]).toEqual([null, true]); // the late one's word takes 600 ms
    const ran = (script: Parameters<typeof runsQuorum>[0]) => () =>
      stage.proxy(3).commands.some(({ command }) => runsQuorum(script)(command));
    await until(ran("release"));
    await until(async () => (await stage.holders())[2] === null);
    expect(lease.held).toBe(true);
    await lease.unlock();
    await stage.free();
  });

  it("that answers no after a decided no leaves nothing to take back", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 20_000 }, "proxies"), await stage.join()];
    await stage.warm(near);
    const lease = await far.locks.lock(stage.name).lock();
    await everywhere();
    for (const proxy of stage.proxies) proxy.record();
    stage.proxy(3).delay(100);
    expect(await near.locks.lock(stage.name).tryLock()).toBe(null);
    await near.locks.close(); // waits for whatever is still to be taken back
    const commands = stage.proxies.flatMap((proxy) => proxy.commands.map(({ command }) => command));
    const votes = commands.filter(runsQuorum("acquire"));
    expect(votes.length).toBe(3);
    const [hold = ""] = votes.map((vote) => vote[5]); // the first lease may still be taken back somewhere
    expect(commands.filter((command) => runsQuorum("release")(command) && command.includes(hold))).toEqual(
      [],
    );
    await lease.unlock();
  });

  it("that loses its reply goes unnoticed, and is released with the others", async () => {
    const near = await stage.join({}, "proxies");
    await stage.warm(near);
    const dropped = stage.proxy(2).dropReply(runsQuorum("acquire"));
    const lease = await near.locks.lock(stage.name).lock();
    await dropped;
    expect(lease.held).toBe(true);
    await lease.unlock();
    await stage.free();
  });

  it("that gets a vote again over a new connection does not count with it", async () => {
    const near = await stage.join({}, "proxies");
    const lock = near.locks.lock(stage.name);
    await stage.warm(near);
    await stage.server(3).kill();
    await until(() => near.nodes[2]?.status !== "ready");
    const dropped = stage.proxy(2).dropReply(runsQuorum("acquire"));
    const error = await failure(lock.tryLock());
    await dropped;
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toContain("node 2: its connection is lost");
    await stage.free(); // ioredis sent it again, and it was executed twice
    await until(() => near.nodes[1]?.status === "ready");
    await (await lock.lock({ wait: 2_000 })).unlock();
  });

  it("with lost replies to an unlock: the unlock finds its own copies", async () => {
    const near = await stage.join({}, "proxies");
    const lease = await near.locks.lock(stage.name).lock();
    const dropped = stage.proxies.map((proxy) => proxy.dropReply(runsQuorum("release")));
    await lease.unlock(); // rejects where a copy is taken for a loss
    await Promise.all(dropped);
    await stage.free();
  });

  it("that restarted without data under an unlock is not mistaken for a copy", async () => {
    const near = await stage.join();
    const lease = await near.locks.lock(stage.name).lock();
    await everywhere();
    for (const node of [1, 2]) await stage.server(node).restart();
    await until(() => near.nodes.every(({ status }) => status === "ready"));
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    await stage.free();
  });

  it("that hangs deprives no waiter of its wake-up or its subscription", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await stage.warm(near);
    const lease = await far.locks.lock(stage.name).lock();
    stage.proxy(3).freeze();
    let told = false;
    near.locks.on("wait", () => {
      told = true;
    });
    const waiter = near.locks.lock(stage.name).lock();
    await until(() => told);
    await until(async () => {
      const counts = await Promise.all([1, 2].map((node) => stage.listeners(node)));
      return counts.every((count) => count === 1);
    });
    const [next, took] = await timedAwake(lease.unlock().then(() => waiter));
    expect(took).toBeLessThan(1_000); // its fallback would come after 30 s
    await next.unlock();
    stage.proxy(3).thaw();
    await stage.free();
  });

  it("that hangs among those that reported a release delays the wake-up only a little", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(() => stage.isHeard());
    await Promise.all(near.nodes.map((node) => node.ping())); // it has read that it is subscribed
    // Two of three messages never come; the lock can still be had.
    for (const node of [2, 3]) stage.proxy(node).partition("subscribers");
    const [next, took] = await timedAwake(lease.unlock().then(() => waiter));
    expect(took).toBeLessThan(1_000);
    await next.unlock();
    for (const node of [2, 3]) stage.proxy(node).thaw();
  });

  it("that is lost does not keep close() from ending", async () => {
    // So long that votes count as prompt however slow this machine is: the unlock needs two nodes
    // without the third.
    const near = await stage.join({ nodeTimeout: 20_000 }, "proxies");
    await stage.warm(near);
    const lease = await near.locks.lock(stage.name).lock();
    await everywhere();
    stage.proxy(3).freeze();
    await lease.unlock();
    const [, took] = await timed(near.locks.close({ grace: 600 }));
    expect(took).toBeGreaterThanOrEqual(590); // it did wait for node 3
    expect(took).toBeLessThan(4_000);
    stage.proxy(3).thaw();
    await stage.free();
  });

  it("that is the same server as another node has no vote of its own", async () => {
    const { nodes } = await stage.join();
    const [first, second] = nodes;
    const twin = (await stage.join()).nodes[1];
    if (!first || !second || !twin) throw new Error("no connections");
    await using locks = createQuorumClient([first, second, twin], { restartDelay: 0 });
    const told: unknown[] = [];
    locks.on("error", (error) => told.push(error));
    await (await locks.lock(stage.name).lock()).unlock(); // the first two are a majority
    // At once, while all is well: not when the server is missed.
    await until(() => told.length > 0);
    expect(told).toEqual([expect.objectContaining({ code: "QUORUM_TWIN", lockName: null })]);
    expect(String(told[0])).toMatch(/Nodes (2 and 3|3 and 2) of this quorum are one server/);
    await stage.server(1).kill();
    await until(() => first.status !== "ready");
    const error = await failure(locks.lock(stage.name).tryLock());
    expect(String(error)).toMatch(/node ([23]): it is the same server as node (?!\1)[23]/);
    await stage.free();
  });

  it("that changed places with another node votes again, for both", async () => {
    const { nodes, locks } = await stage.join({ restartDelay: 0 });
    const [first, second] = nodes;
    if (!first || !second) throw new Error("no connections");
    await (await locks.lock(stage.name).lock()).unlock();
    const [a, b] = [stage.server(1).port, stage.server(2).port];
    [first.options.port, second.options.port] = [b, a];
    for (const node of [first, second]) node.disconnect(true);
    const isAt = async (node: Redis, port: number) =>
      String(await node.config("GET", "port")) === `port,${port}`;
    await until(async () => (await isAt(first, b)) && (await isAt(second, a)));
    await stage.server(3).kill();
    await (await locks.lock(stage.name).lock({ wait: 2_000 })).unlock();
    await stage.free();
  });

  it("that was another node for a time is not both of them afterwards, with two votes", async () => {
    const theirs = await stage.join({}, "proxies");
    await stage.cutOff(1, theirs);
    const { nodes, locks } = await stage.join({ restartDelay: 0 });
    const [first, second] = nodes;
    if (!first || !second) throw new Error("no connections");
    await (await locks.lock(stage.name).lock()).unlock();
    await stage.free();
    const { port } = stage.server(1);
    const leave = async (node: Redis) => {
      node.options.port = await freePort();
      node.disconnect(true);
      await until(() => node.status !== "ready");
    };
    const goThere = async (node: Redis) => {
      node.options.port = port;
      await until(async () => String(await node.config("GET", "port")) === `port,${port}`);
      await node.ping(); // it has said who it is
    };
    await leave(first);
    await leave(second);
    await goThere(second);
    await leave(second);
    await goThere(first);
    await goThere(second);
    const lease = await theirs.locks.lock(stage.name).lock();
    const other = await locks.lock(stage.name).tryLock();
    expect([lease.held, other?.held]).toEqual([true, undefined]);
    await lease.unlock();
    await stage.free();
  });
});
