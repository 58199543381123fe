import { describe, expect, it, vi } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { failure, lossOf } from "../contract/observe.ts";
import { linkOf } from "../support/link.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A minority costs nothing, without a majority nobody has the lock, and half is none.

/** What a call may take that waits for no node: a third of the default `nodeTimeout`. */
const AT_ONCE = 400 / 3;

describe.each([3, 5])("%i masters", (count) => {
  const stage = new QuorumStage(count);
  const minority = Array.from({ length: (count - 1) / 2 }, (_, i) => count - i);

  it("a minority that is down costs nothing, and excludes no client less", async () => {
    const [first, second] = [await stage.join(), await stage.join()];
    const [mine, theirs] = [first.locks.lock(stage.name), second.locks.lock(stage.name)];
    await stage.warm(first, second);
    for (const node of minority) await stage.server(node).kill();
    for (let round = 0; round < 3; round++) {
      const [lease, took] = await timedAwake(mine.lock());
      expect([lease.held, await theirs.tryLock()]).toEqual([true, null]);
      const [, gone] = await timedAwake(lease.unlock());
      expect(Math.max(took, gone)).toBeLessThan(AT_ONCE);
      await (await theirs.lock({ wait: 2_000 })).unlock();
    }
  });

  it("a minority that never existed costs nothing", async () => {
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
    await stage.warm(first, second);
    const sent = minority.map((node) => {
      stage.server(node).suspend();
      const connection = first.nodes[node - 1];
      if (!connection) throw new Error("no such node");
      return vi.spyOn(linkOf(connection), "send");
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
    await stage.free();
    // It votes again.
    const last = await until(async () => {
      const one = await mine.lock();
      if ((await stage.holders()).every((holder) => holder !== null)) return one;
      await one.unlock();
      return null;
    });
    await last.unlock();
    await stage.free();
  });

  it("a majority that is down makes the lock unavailable, with every node's reason", async () => {
    const party = await stage.join();
    const { locks, nodes } = party;
    const lock = locks.lock(stage.name);
    await stage.warm(party);
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

  it("a majority that is lost under a holder ends the lease before another caller can have it", async () => {
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

  it("renewals succeed with a majority, whatever the other nodes do", async () => {
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

describe("four masters", () => {
  const stage = new QuorumStage(4);

  it("two clients with half of the votes each give them back, and one gets the lock", async () => {
    const patient = { nodeTimeout: 5_000 };
    const [first, second] = [await stage.join(patient, "proxies"), await stage.join(patient)];
    await stage.warm(first, second);
    // Two of the first one's votes come late: by then the second has those nodes.
    for (const node of [3, 4]) stage.proxy(node).delay(60);
    const leases: number[] = [];
    const call = ({ locks }: typeof first) =>
      locks.lock(stage.name).withLock({ wait: 5_000 }, ({ token }) => void leases.push(token));
    const calls = [call(first)];
    await until(async () => (await stage.holders()).filter((holder) => holder !== null).length === 2);
    calls.push(call(second));
    await Promise.all(calls);
    expect(leases.length).toBe(2);
    expect(leases[1]).toBeGreaterThan(leases[0] ?? 0);
  });
});
