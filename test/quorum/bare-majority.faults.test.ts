import { describe, expect, it } from "vitest";
import { type Lease, LockUnavailableError } from "../../src/index.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { failure } from "../contract/observe.ts";
import { type QuorumParty, QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A lease that a bare majority has granted comes to stand on the other nodes too, and on none that
// had it and lost it.

/** What a call may take that waits for no node: a third of the default `nodeTimeout`. */
const AT_ONCE = 400 / 3;

const stage = new QuorumStage(3);
const NODES = [1, 2, 3];
const values = () => Promise.all(NODES.map((node) => stage.admin(node).get(stage.key())));
const joins = (node: number) =>
  stage.proxy(node).commands.filter(({ command }) => runsQuorum("join")(command)).length;

/** This client has a lease by nodes 1 and 2: another one's vote stands at node 3. */
async function bare(party: QuorumParty, lease = 30_000): Promise<Lease> {
  await stage.warm(party);
  await stage.admin(3).set(stage.key(), "somebody:1 1", "PX", 60_000);
  return party.locks.lock(stage.name).lock({ lease });
}

describe("a lease of a bare majority", () => {
  it("after a race gets all nodes when the loser has given its own back; then any one of them may fail", async () => {
    const [loser, winner] = [await stage.join({}, "proxies"), await stage.join()];
    const third = await stage.join();
    await stage.warm(loser, winner, third);
    for (const node of [2, 3]) stage.proxy(node).delay(25);
    const lost = loser.locks.lock(stage.name).tryLock();
    await until(async () => (await stage.holders())[0] !== null);
    const lease = await winner.locks.lock(stage.name).lock({ lease: 10_000 });
    expect(await lost).toBe(null);
    await until(() => stage.isEverywhere());
    // The last one counts when the winner has seen the others whole since then: its own command
    // behind the first of these.
    for (const ms of [11_000, 12_000]) await lease.extend(ms);
    stage.server(2).suspend();
    expect((await timedAwake(lease.extend(20_000)))[1]).toBeLessThan(AT_ONCE);
    expect(await third.locks.lock(stage.name).isLocked()).toBe(true);
    stage.server(2).resume();
    await stage.admin(2).flushall();
    expect([await third.locks.lock(stage.name).tryLock(), lease.held]).toEqual([null, true]);
    await lease.unlock();
    await stage.free();
  });

  it.each([
    ["behind", -3_600_000_000],
    ["ahead", 3_600_000_000],
  ])("has the same token at a node whose clock is %s, and that clock never goes back", async (_, micros) => {
    const party = await stage.join();
    const lease = await bare(party);
    const last = lease.token + micros;
    await stage.admin(3).set(stage.clock, `${last}`);
    await stage.admin(3).del(stage.key());
    await until(() => stage.isEverywhere());
    expect(new Set(await values()).size).toBe(1);
    const passes = 16;
    expect(Number(await stage.admin(3).get(stage.clock))).toBe(Math.max(last, lease.token + passes));
    await lease.unlock();
    await stage.free();
  });

  it("ends at all nodes at the same time", async () => {
    const party = await stage.join();
    const lease = await bare(party, 3_000);
    const ends = () => Promise.all(NODES.map((node) => stage.admin(node).pexpiretime(stage.key())));
    const [first = 0, second = 0] = await ends();
    const start = performance.now();
    await until(() => performance.now() - start > 500);
    await stage.admin(3).del(stage.key());
    await until(() => stage.isEverywhere());
    const [firstNow, secondNow, third] = await ends();
    expect([firstNow, secondNow]).toEqual([first, second]);
    expect(third).toBeLessThanOrEqual(Math.max(first, second) + 150); // a joining takes its time
    expect(third).toBeGreaterThan(Math.min(first, second) - 150);
    await until(() => !lease.held);
    await failure(lease.unlock());
    await stage.free();
  });

  it("does not count a node that came after another caller had the lock", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await stage.warm(near, far);
    await stage.cutOff(3, near);
    const lease = await near.locks.lock(stage.name).lock({ lease: 30_000 });
    await until(async () => (await stage.holders()).filter((holder) => holder !== null).length === 2);
    await stage.admin(2).del(stage.key());
    const other = await far.locks.lock(stage.name).lock();
    await other.unlock();
    await until(async () => (await stage.holders()).filter((holder) => holder !== null).length === 1);
    stage.proxy(3).record();
    stage.proxy(3).refuse(false);
    // the late comer, without waiting for the next renewal
    await until(() => joins(3) > 0, { timeout: 10_000 });
    // Two of three have the hold, for a moment; and yet it was not held in between.
    expect(await failure(lease.extend(30_000))).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    await lease.unlock();
    await stage.free();
  });

  it("does not count a vote that was executed after another caller had the lock", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 3_000 }, "proxies"), await stage.join()];
    await stage.warm(near, far);
    stage.proxy(3).partition("commands"); // the vote
    const lease = await near.locks.lock(stage.name).lock({ lease: 30_000 });
    await stage.admin(2).del(stage.key());
    const other = await far.locks.lock(stage.name).lock();
    expect(other.token).toBeGreaterThan(lease.token);
    await other.unlock();
    expect((await stage.holders())[2]).toBe(null);
    stage.proxy(3).thaw();
    await until(async () => (await stage.holders())[2] !== null);
    expect(await failure(lease.extend(30_000))).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    await lease.unlock();
    await stage.free();
  });

  it.each(["extend", "unlock"] as const)(
    "does not count a late vote whose answer comes in one packet with that of %s",
    async (call) => {
      const [near, far] = [await stage.join({ nodeTimeout: 3_000 }, "proxies"), await stage.join()];
      await stage.warm(near, far);
      stage.proxy(3).partition("commands"); // the vote
      const lease = await near.locks.lock(stage.name).lock({ lease: 30_000 });
      await stage.admin(2).del(stage.key());
      const other = await far.locks.lock(stage.name).lock();
      await other.unlock();
      await until(async () => (await stage.holders()).slice(1).every((holder) => holder === null));
      const called = failure(call === "extend" ? lease.extend(30_000) : lease.unlock());
      stage.proxy(3).thaw();
      expect(await called).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
      await stage.free();
    },
  );

  it("was not held to its end by a joining whose answer comes in one packet with that of unlock", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 3_000 }, "proxies"), await stage.join()];
    await stage.warm(far);
    const stalled = stage.proxy(3).stall(runsQuorum("join"));
    const lease = await bare(near);
    await stalled;
    for (const node of [2, 3]) await stage.admin(node).del(stage.key());
    await far.locks.lock(stage.name).withLock(() => {});
    await until(async () => (await stage.holders()).slice(1).every((holder) => holder === null));
    const unlocked = failure(lease.unlock());
    stage.proxy(3).thaw();
    expect(await unlocked).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    await stage.free();
  });

  it("was not held to its end by a joining whose answer was lost", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await stage.warm(far);
    const lease = await bare(near);
    await stage.cutOff(3, near);
    for (const node of [2, 3]) await stage.admin(node).del(stage.key());
    await far.locks.lock(stage.name).withLock(() => {});
    await until(async () => (await stage.holders()).slice(1).every((holder) => holder === null));
    const dropped = stage.proxy(3).dropReply(runsQuorum("join"));
    stage.proxy(3).refuse(false);
    await dropped;
    await until(() => near.nodes[2]?.status === "ready");
    // Two nodes release the hold; and yet it was not held in between.
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
    await stage.free();
  });

  it("is taken back from a joined node when the others turn out to have lost it", async () => {
    const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
    await stage.warm(near, far);
    stage.proxy(3).record();
    await stage.admin(3).config("SET", "maxmemory", "1");
    const lease = await near.locks.lock(stage.name).lock({ lease: 60_000 });
    await until(() => joins(3) > 1);
    expect(await far.locks.lock(stage.name).forceUnlock()).toBe(true);
    await stage.admin(3).config("SET", "maxmemory", "0");
    const isLeft = () => stage.proxy(3).commands.some(({ command }) => runsQuorum("release")(command));
    await until(isLeft, { what: "a release at the third node" });
    await until(async () => (await stage.holders())[2] === null);
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
  });

  it("brings nothing to a node after the release that overtook it there", async () => {
    const near = await stage.join({}, "proxies");
    const lease = await bare(near);
    await stage.admin(3).script("FLUSH");
    await stage.admin(3).script("LOAD", quorumLua.release.lua); // known, unlike `join`: it is not sent twice
    stage.proxy(3).delay(50);
    stage.proxy(3).record();
    await stage.admin(3).del(stage.key());
    await until(() => joins(3) > 0);
    await lease.unlock();
    await until(() => stage.proxy(3).commands.some(({ command }) => command[0] === "eval"));
    await stage.free();
    await near.locks.close();
    expect(await stage.holders()).toEqual([null, null, null]);
  });

  it("asks no further node after its release", async () => {
    const near = await stage.join({}, "proxies");
    stage.proxy(3).record();
    const lease = await bare(near);
    await until(() => joins(3) > 1);
    await lease.unlock();
    const [before, start] = [joins(3), performance.now()];
    await until(() => performance.now() - start > 500); // the next one would come after 40 or 80 ms
    expect(joins(3)).toBe(before);
    await stage.admin(3).del(stage.key());
  });

  it("does not arise if all nodes voted: nothing is sent", async () => {
    // no vote is slow, on a slow machine too
    const near = await stage.join({ nodeTimeout: 10_000 }, "proxies");
    await near.locks.lock(stage.name).withLock(() => until(() => stage.isEverywhere()));
    await stage.free();
    for (const proxy of stage.proxies) proxy.record();
    const lease = await near.locks.lock(stage.name).lock();
    const start = performance.now();
    await until(() => performance.now() - start > 200); // the first one would be asked after 10 ms
    const sent = stage.proxies.flatMap(({ commands }) => commands.map(({ command }) => command));
    const count = (script: Parameters<typeof runsQuorum>[0]) => sent.filter(runsQuorum(script)).length;
    expect([count("acquire"), count("join"), count("renew")]).toEqual([3, 0, 0]);
    await lease.unlock();
  });

  it("is neither free nor held by the word of two nodes while the third one is down", async () => {
    const [near, far] = [await stage.join(), await stage.join()];
    await stage.warm(far);
    const lease = await bare(near);
    await stage.server(2).kill();
    await until(() => far.nodes[1]?.status !== "ready");
    const lock = far.locks.lock(stage.name);
    const calls = [lock.isLocked(), lock.inspect(), lock.forceUnlock()].map(failure);
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockUnavailableError);
    await stage.admin(3).del(stage.key());
    await until(async () => (await stage.holders()).every((holder) => holder !== null));
    expect([await lock.isLocked(), lease.held]).toEqual([true, true]);
    expect(await lock.forceUnlock()).toBe(true);
    expect(await lock.isLocked()).toBe(false);
    await failure(lease.unlock());
  });
});
