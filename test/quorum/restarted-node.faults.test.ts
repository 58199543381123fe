import { beforeAll, describe, expect, it } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { failure, tried } from "../contract/observe.ts";
import { type QuorumParty, QuorumStage } from "../support/quorum-stage.ts";
import { launchWithClock, type ServerClock } from "../support/server-clock.ts";
import { until } from "../support/until.ts";

const LONGEST = 1_000;
/** Short enough for a test; the servers must be older when it begins. */
const QUARANTINE = { longestLease: LONGEST, restartDelay: 2_000 };

const clocks: ServerClock[] = [];
const stage = new QuorumStage(3, async (count) => {
  const all = await Promise.all(Array.from({ length: count }, () => launchWithClock()));
  clocks.push(...all.map(({ clock }) => clock));
  return all.map(({ server }) => server);
});

async function uptime(node: number): Promise<number> {
  const info = await stage.admin(node).info("server");
  return Number(/uptime_in_seconds:(\d+)/.exec(info)?.[1]);
}

const allOld = () =>
  until(async () => (await Promise.all([1, 2, 3].map(uptime))).every((seconds) => seconds >= 4), {
    timeout: 15_000,
  });

/** A client that has votes of nodes 1 and 2 only, and holds the lock by them. */
async function holder(name: string) {
  const party = await stage.join({ ...QUARANTINE }, "proxies");
  const has = (count: number) => async () =>
    (await stage.holders(name)).filter((one) => one !== null).length === count;
  // Every node has had a hold of this client, so nothing is on its way to one that is left alone now.
  await party.locks.lock(name).withLock(() => until(has(3)));
  await until(has(0));
  await stage.cutOff(3, party);
  const lease = await party.locks.lock(name).lock({ lease: LONGEST });
  await until(has(2));
  return lease;
}

const ready = ({ nodes }: QuorumParty) => until(() => nodes.every(({ status }) => status === "ready"));

describe("a node that restarts without data under a holder", () => {
  beforeAll(allOld);

  it("gives a second holder the lock without the quarantine", async () => {
    await allOld();
    const other = await stage.join({ restartDelay: 0 });
    const lease = await holder(stage.name);
    await stage.server(2).restart();
    await ready(other);
    const second = await other.locks.lock(stage.name).tryLock();
    // Two holders at one time: this is what a quorum does whose nodes forget, and nobody waits.
    expect([lease.held, second?.held]).toEqual([true, true]);
    expect(second?.token).toBeGreaterThan(lease.token); // the fence holds
    await second?.unlock();
    await failure(lease.unlock());
  });

  it("gives no other caller the lock with the quarantine", async () => {
    await allOld();
    const other = await stage.join(QUARANTINE);
    const lease = await holder(stage.name);
    await stage.server(2).restart();
    await ready(other);
    const answers: unknown[] = [];
    let tries = 0;
    while (lease.held) {
      answers.push(
        await other.locks
          .lock(stage.name)
          .tryLock()
          .catch((error: unknown) => error),
      );
      if (lease.held) tries = answers.length;
    }
    expect(tries).toBeGreaterThan(3);
    expect(answers.slice(0, tries).every((answer) => answer === null)).toBe(true);
    await failure(lease.unlock());
    await (await other.locks.lock(stage.name).lock({ wait: 5_000 })).unlock();
  });

  it("does not join a lease that others have granted, while it is young", async () => {
    await allOld();
    const lease = await holder(stage.name);
    await stage.server(3).restart();
    stage.proxy(3).refuse(false);
    const other = await stage.join(QUARANTINE);
    await ready(other);
    while (lease.held) expect((await stage.holders())[2]).toBe(null);
    await failure(lease.unlock());
  });

  it("does not count as able to vote: a hanging node is waited for instead", async () => {
    await allOld();
    const party = await stage.join(QUARANTINE);
    const lock = party.locks.lock(stage.name);
    await lock.withLock(() => {});
    await stage.server(2).restart();
    await ready(party);
    stage.server(3).suspend();
    await failure(lock.tryLock()); // its silence is noticed
    const call = lock.tryLock();
    stage.server(3).resume();
    await (await call)?.unlock();
    expect(await call).not.toBe(null);
  });

  it("reports when it will vote again, and does", async () => {
    await allOld();
    const party = await stage.join(QUARANTINE);
    const lock = party.locks.lock(stage.name);
    await lock.withLock(() => {});
    await stage.server(3).kill();
    await stage.server(2).restart();
    await until(() => party.nodes[1]?.status === "ready" && party.nodes[2]?.status !== "ready");
    const error = await failure(lock.tryLock());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toMatch(/node 2 restarted \d+ s ago and votes again in [1-3] s/);
    const start = performance.now();
    const lease = await until(() => lock.tryLock().catch(() => null));
    expect(performance.now() - start).toBeGreaterThan(1_000);
    await lease.unlock();
  });

  it("does not vote on a command that ioredis resends to it", async () => {
    await allOld();
    const party = await stage.join(QUARANTINE);
    const lock = party.locks.lock(stage.name);
    await lock.withLock(() => {});
    await stage.server(3).kill();
    await until(() => party.nodes[2]?.status !== "ready");
    stage.server(2).suspend();
    const call = failure(lock.tryLock());
    await until(async () => (await stage.holders())[0] !== null);
    await stage.server(2).restart();
    const error = await call;
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toContain("node 2: its connection is lost");
    await until(() => party.nodes[1]?.status === "ready");
    await until(async () => (await stage.holders()).every((one) => one === null));
  });

  it.each([0, QUARANTINE.restartDelay + 100])(
    "is young although its clock was stepped forward, to a client that knew its former process %i ms ago",
    async (idle) => {
      await allOld();
      const party = await stage.join(QUARANTINE, "proxies");
      const lock = party.locks.lock(stage.name);
      await lock.withLock(() => {});
      const start = performance.now();
      await until(() => performance.now() - start >= idle);
      stage.proxy(3).refuse(true);
      stage.proxy(3).cut();
      stage.proxy(2).refuse(true); // nobody asks it before the step
      await stage.server(2).restart();
      clocks[1]?.jump(3_600_000);
      await until(async () => (await uptime(2)) >= 3_600);
      stage.proxy(2).refuse(false);
      await until(() => party.nodes[1]?.status === "ready" && party.nodes[2]?.status !== "ready");
      expect(String(await failure(lock.tryLock()))).toMatch(/node 2 restarted \d+ s ago/);
      await until(async () => (await lock.tryLock().catch(() => null))?.unlock().then(() => true));
      clocks[1]?.jump(-3_600_000);
    },
  );
});

describe("a node whose clock jumps by an hour", () => {
  it.each([3_600_000, -3_600_000])("by %i ms: one holder, and tokens that grow", async (ms) => {
    // A busy machine keeps this process from renewing for seconds, and then the lock is another's by right.
    const options = { leaseTime: 4_500 };
    const [first, second] = [await stage.join(options), await stage.join(options)];
    const [mine, theirs] = [first.locks.lock(stage.name), second.locks.lock(stage.name)];
    const tokens: number[] = [];
    const visit = (lock: typeof mine) =>
      lock.withLock({ wait: 30_000 }, ({ token }) => void tokens.push(token));
    for (const lock of [mine, theirs]) await visit(lock);
    // By all three: a lease that stands on a bare majority does not outlive the clock of one of them.
    await until(async () => (await stage.holders()).every((one) => one === null));
    const lease = await mine.lock();
    await until(async () => new Set(await stage.holders()).size === 1);
    tokens.push(lease.token);
    clocks[0]?.jump(ms);
    await until(
      async () =>
        Math.abs(Number((await stage.admin(1).time())[0]) * 1_000 - Date.now() - (clocks[0]?.ahead ?? 0)) <
        5_000,
    );
    const start = performance.now();
    while (performance.now() - start < 1.2 * options.leaseTime) {
      const got = await tried(theirs);
      expect({ got, held: lease.held }).toEqual({ got: null, held: true });
    }
    expect(lease.held).toBe(true); // renewed by the others
    await lease.unlock();
    for (const lock of [theirs, mine, theirs]) await visit(lock);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    clocks[0]?.jump(-ms);
  });
});
