import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { LockUnavailableError } from "../../../src/index.ts";
import { freePort } from "../../../tools/redis/probe.ts";
import { failure, lossOf } from "../../contract/observe.ts";
import { QuorumStage, runsQuorum } from "../../support/quorum-stage.ts";
import { timed, timedAwake } from "../../support/stage.ts";
import { until } from "../../support/until.ts";

/** What a call may take that waits for no node: a third of the default `nodeTimeout`. */
const AT_ONCE = 400 / 3;

describe.each([3, 5])("%i masters", (count) => {
  const stage = new QuorumStage(count);
  const minority = Array.from({ length: (count - 1) / 2 }, (_, i) => count - i);

  it("a minority that is down costs nothing, and excludes nobody less", async () => {
    const [first, second] = [await stage.join(), await stage.join()];
    const [mine, theirs] = [first.locks.lock(stage.name), second.locks.lock(stage.name)];
    for (const lock of [mine, theirs]) await lock.withLock(() => {});
    for (const node of minority) await stage.server(node).kill();
    for (let round = 0; round < 3; round++) {
      const [lease, took] = await timedAwake(mine.lock());
      expect([lease.held, await theirs.tryLock()]).toEqual([true, null]);
      const [, gone] = await timedAwake(lease.unlock());
      expect(Math.max(took, gone)).toBeLessThan(AT_ONCE);
      await (await theirs.lock({ wait: 2_000 })).unlock();
    }
  });

  it("a minority that was never there costs nothing", async () => {
    for (const node of minority) await stage.server(node).kill();
    const { locks, nodes } = await stage.join({}, "straight", false);
    for (const [i, node] of nodes.entries()) if (!minority.includes(i + 1)) await node.ping();
    const [lease, took] = await timedAwake(locks.lock(stage.name).lock());
    expect([lease.held, took < AT_ONCE]).toEqual([true, true]);
    await lease.unlock();
  });

  it("a minority that hangs costs nothing, and no command piles up for it", async () => {
    const [first, second] = [await stage.join({ nodeTimeout: 300 }), await stage.join()];
    const mine = first.locks.lock(stage.name);
    await mine.withLock(() => {});
    await second.locks.lock(stage.name).withLock(() => {});
    const sent = minority.map((node) => {
      stage.server(node).suspend();
      const connection = first.nodes[node - 1];
      if (!connection) throw new Error("no such node");
      return vi.spyOn(connection, "sendCommand");
    });
    const lease = await mine.lock();
    const [, extended] = await timedAwake(lease.extend(40_000));
    expect(await second.locks.lock(stage.name).tryLock()).toBe(null);
    const [, unlocked] = await timedAwake(lease.unlock());
    expect(Math.max(extended, unlocked)).toBeLessThan(AT_ONCE);
    const start = performance.now();
    let rounds = 0;
    const waits: number[] = [];
    while (rounds <= 50 || performance.now() - start < 1_500) {
      const [again, took] = await timedAwake(mine.lock());
      waits.push(took);
      await again.unlock();
      rounds++;
    }
    expect(waits.sort((a, b) => a - b)[Math.floor(waits.length / 2)]).toBeLessThan(AT_ONCE);
    // Once the silence is noticed, a probe at a time.
    const before = sent.map(({ mock }) => mock.calls.length);
    for (let round = 0; round < 20; round++) await mine.withLock(() => {});
    for (const [i, { mock }] of sent.entries())
      expect(mock.calls.length - (before[i] ?? 0)).toBeLessThanOrEqual(2);
    for (const node of minority) stage.server(node).resume();
    await until(async () => (await stage.holders()).every((holder) => holder === null));
    // It votes again.
    const last = await until(async () => {
      const one = await mine.lock();
      if ((await stage.holders()).every((holder) => holder !== null)) return one;
      await one.unlock();
      return null;
    });
    await last.unlock();
    await until(async () => (await stage.holders()).every((holder) => holder === null));
  });

  it("a majority that is down makes the lock unavailable, with every node's reason", async () => {
    const { locks, nodes } = await stage.join();
    const lock = locks.lock(stage.name);
    await lock.withLock(() => {});
    const down = [count - minority.length, ...minority];
    for (const node of down) await stage.server(node).kill();
    await until(() => down.every((node) => nodes[node - 1]?.status !== "ready"));
    const [error, took] = await timedAwake(failure(lock.tryLock()));
    expect(error).toBeInstanceOf(LockUnavailableError);
    const { cause } = error as { cause: AggregateError };
    expect(cause).toBeInstanceOf(AggregateError);
    const reasons = cause.errors.map(({ message }: Error) => message).sort();
    expect(reasons).toEqual(
      down.sort().map((node) => expect.stringContaining(`node ${node}: its connection is lost (127.0.0.1:`)),
    );
    expect(took).toBeLessThan(AT_ONCE);
    for (const node of down) await stage.server(node).restart();
    await until(async () => (await lock.tryLock(5_000).catch(() => null))?.unlock().then(() => true));
  });

  it("a majority that is lost under a holder ends the lease before anybody else can have it", async () => {
    const { locks } = await stage.join({ leaseTime: 600 });
    const other = await stage.join();
    const lease = await locks.lock(stage.name).lock();
    const { signal } = lease;
    for (let node = 1; node <= count; node++) if (node !== 1) stage.server(node).suspend();
    expect(await lossOf(signal)).toBe("expired");
    for (let node = 2; node <= count; node++) stage.server(node).resume();
    await failure(lease.unlock());
    const next = await until(() =>
      other.locks
        .lock(stage.name)
        .tryLock(2_000)
        .catch(() => null),
    );
    expect(lease.held).toBe(false);
    await next.unlock();
  });

  it("renewals go on by a majority, whatever the others do", async () => {
    const { locks } = await stage.join({ leaseTime: 600 });
    const other = await stage.join();
    const lease = await locks.lock(stage.name).lock();
    stage.server(count).suspend();
    let renewals = 0;
    locks.on("renew", () => void renewals++);
    await until(() => renewals > 6); // for more than two leases
    expect([lease.held, await other.locks.lock(stage.name).tryLock()]).toEqual([true, null]);
    await lease.unlock();
  });
});

describe("a node of three", () => {
  const stage = new QuorumStage(3);
  const free = () => until(async () => (await stage.holders()).every((holder) => holder === null));
  /** A lease is given when a majority has voted; the last vote may come later. */
  const everywhere = () => until(async () => !(await stage.holders()).includes(null));

  it("that lost the key takes it again; when two of them lose it at a time the lease is gone", async () => {
    const { locks } = await stage.join({ leaseTime: 600 });
    const lease = await locks.lock(stage.name).lock();
    await everywhere();
    await stage.admin(3).del(stage.key());
    await everywhere();
    expect(lease.held).toBe(true);
    for (const node of [2, 3]) await stage.admin(node).del(stage.key());
    expect(await lossOf(lease.signal)).toBe("gone");
    await failure(lease.unlock());
    await free();
  });

  it("that is slow is waited for when the others cannot decide", async () => {
    const near = await stage.join({ nodeTimeout: 5_000 }, "proxies");
    await near.locks.lock(stage.name).withLock(() => {});
    await stage.server(1).kill();
    await until(() => near.nodes[0]?.status !== "ready");
    stage.proxy(2).delay(150);
    const [lease, took] = await timed(near.locks.lock(stage.name).lock());
    expect(took).toBeGreaterThanOrEqual(150);
    expect(took).toBeLessThan(4_000);
    expect(lease.remaining()).toBeLessThan(30_000 * 0.99 - 150); // counted from the sending
    stage.proxy(2).delay(0);
    await lease.unlock();
  });

  it("a lease that the votes have eaten is never given", async () => {
    const near = await stage.join({ nodeTimeout: 5_000 }, "proxies");
    const far = await stage.join();
    await near.locks.lock(stage.name).withLock(() => {});
    // Each round trip fits into the lease; votes that differ need two of them.
    for (const node of [1, 2, 3])
      await stage.admin(node).set(stage.clock, `${(Date.now() + node * 60_000) * 1_000}`);
    for (const node of [2, 3]) stage.proxy(node).delay(90);
    const error = await failure(near.locks.lock(stage.name).tryLock(2_000, 300));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toContain("the votes took longer than the lease");
    for (const node of [2, 3]) stage.proxy(node).delay(0);
    await (await far.locks.lock(stage.name).lock({ wait: 2_000 })).unlock();
    await free();
  });

  it("a late grant, after nobody waits any more, is taken back", async () => {
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
    await free();
  });

  it("that hung does not vote for those who have given up: the next one is not held up", async () => {
    const [near, far] = [await stage.join(), await stage.join()];
    for (const { locks } of [near, far]) await locks.lock(stage.name).withLock(() => {});
    await free();
    for (const node of [2, 3]) stage.server(node).suspend();
    const start = performance.now();
    while (performance.now() - start < 1_000) await failure(near.locks.lock(stage.name).tryLock());
    for (const node of [2, 3]) stage.server(node).resume();
    // Votes that were executed would go when they are taken back, at some time in the next second.
    const back = performance.now();
    while (performance.now() - back < 100) expect((await stage.holders()).slice(1)).toEqual([null, null]);
    await (await until(() => far.locks.lock(stage.name).tryLock())).unlock();
    await free();
  });

  it("a late yes after a decided no is taken back", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 2_000 }, "proxies"), await stage.join()];
    await near.locks.lock(stage.name).withLock(() => {});
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
    await free();
  });

  it("a late no after a decided no leaves nothing to take back", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await near.locks.lock(stage.name).withLock(() => {});
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

  it("that loses its reply is missed by nobody, and is released with the others", async () => {
    const near = await stage.join({}, "proxies");
    await near.locks.lock(stage.name).withLock(() => {});
    const dropped = stage.proxy(2).dropReply(runsQuorum("acquire"));
    const lease = await near.locks.lock(stage.name).lock();
    await dropped;
    expect(lease.held).toBe(true);
    await lease.unlock();
    await free();
  });

  it("a vote that was sent again over a new connection does not count", async () => {
    const near = await stage.join({}, "proxies");
    const lock = near.locks.lock(stage.name);
    await lock.withLock(() => {});
    await stage.server(3).kill();
    await until(() => near.nodes[2]?.status !== "ready");
    const dropped = stage.proxy(2).dropReply(runsQuorum("acquire"));
    const error = await failure(lock.tryLock());
    await dropped;
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toContain("node 2: its connection is lost");
    await free(); // ioredis sent it again, and it was executed twice
    await (await lock.lock({ wait: 2_000 })).unlock();
  });

  it("an unlock whose replies are all lost finds its own copies", async () => {
    const near = await stage.join({}, "proxies");
    const lease = await near.locks.lock(stage.name).lock();
    const dropped = stage.proxies.map((proxy) => proxy.dropReply(runsQuorum("release")));
    await lease.unlock(); // rejects where a copy is taken for a loss
    await Promise.all(dropped);
    await free();
  });

  it("that restarted empty under an unlock does not look like a copy", async () => {
    const near = await stage.join();
    const lease = await near.locks.lock(stage.name).lock();
    await everywhere();
    for (const node of [1, 2]) await stage.server(node).restart();
    await until(() => near.nodes.every(({ status }) => status === "ready"));
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    await free();
  });

  it("that hangs keeps no waiter from its wake-up, nor from its subscription", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await near.locks.lock(stage.name).withLock(() => {});
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
    await free();
  });

  it("that hangs among those who have told of a release delays the wake-up by little", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    const lease = await far.locks.lock(stage.name).lock();
    const waiter = near.locks.lock(stage.name).lock();
    await until(() => stage.isHeard());
    // Two of three messages never come; the lock can still be had.
    for (const node of [2, 3]) stage.proxy(node).partition("subscribers");
    const [next, took] = await timedAwake(lease.unlock().then(() => waiter));
    expect(took).toBeLessThan(1_000);
    await next.unlock();
    for (const node of [2, 3]) stage.proxy(node).thaw();
  });

  it("that is lost does not keep close() from its end", async () => {
    const near = await stage.join({}, "proxies");
    await near.locks.lock(stage.name).withLock(() => {});
    await free();
    const lease = await near.locks.lock(stage.name).lock();
    await everywhere();
    stage.proxy(3).freeze();
    await lease.unlock();
    const [, took] = await timed(near.locks.close({ grace: 600 }));
    expect(took).toBeGreaterThanOrEqual(590); // it did wait for node 3
    expect(took).toBeLessThan(4_000);
    stage.proxy(3).thaw();
    await free();
  });

  it("that is the same server as another one has no vote of its own", async () => {
    const { nodes } = await stage.join();
    const [first, second] = nodes;
    const twin = (await stage.join()).nodes[1];
    if (!first || !second || !twin) throw new Error("no connections");
    const { createLockClient } = await import("../../../src/index.ts");
    await using locks = createLockClient([first, second, twin], { restartDelay: 0 });
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
    await free();
  });

  it("that changed places with another one votes again, for both", async () => {
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
    await free();
  });

  it("that was another one for a time is not both of them afterwards, with two votes", async () => {
    const theirs = await stage.join({}, "proxies");
    await stage.cutOff(1, theirs);
    const { nodes, locks } = await stage.join({ restartDelay: 0 });
    const [first, second] = nodes;
    if (!first || !second) throw new Error("no connections");
    await (await locks.lock(stage.name).lock()).unlock();
    await free();
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
    await free();
  });
});

describe("four masters", () => {
  const stage = new QuorumStage(4);

  it("two clients with half of the votes each both give them back, and one gets the lock", async () => {
    const patient = { nodeTimeout: 5_000 };
    const [first, second] = [await stage.join(patient, "proxies"), await stage.join(patient)];
    for (const { locks } of [first, second]) await locks.lock(stage.name).withLock(() => {});
    // Two of the first one's votes come late: by then the second has those nodes.
    for (const node of [3, 4]) stage.proxy(node).delay(60);
    const leases: number[] = [];
    const call = ({ locks }: typeof first) =>
      locks.lock(stage.name).withLock(({ token }) => void leases.push(token), { wait: 5_000 });
    const calls = [call(first)];
    await until(async () => (await stage.holders()).filter((holder) => holder !== null).length === 2);
    calls.push(call(second));
    await Promise.all(calls);
    expect(leases.length).toBe(2);
    expect(leases[1]).toBeGreaterThan(leases[0] ?? 0);
  });
});
