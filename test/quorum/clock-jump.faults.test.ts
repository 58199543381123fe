import { afterEach, describe, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { StaleTokenError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { launchWithClock, type ServerClock } from "../support/server-clock.ts";
import { until } from "../support/until.ts";

// The example of Martin Kleppmann's article against Redlock: five masters, and the clock of one of
// them jumps. What it does to two clients, and what the fence does then.

const HOUR = 3_600_000;
/** The first renewal, by which the first holder learns of the second one, is after a third of this. */
const LEASE = 9_000;
const clocks: ServerClock[] = [];
const stage = new QuorumStage(5, async (count) => {
  const all = await Promise.all(Array.from({ length: count }, () => launchWithClock()));
  clocks.push(...all.map(({ clock }) => clock));
  return all.map(({ server }) => server);
});
const parties = new Parties();

afterEach(async () => {
  for (const clock of clocks) clock.jump(-clock.ahead);
  await parties.close();
});

/** Resolves when these nodes, counted from 1, say that it is later. */
async function jump(...nodes: number[]): Promise<void> {
  const before = Date.now();
  for (const node of nodes) clocks[node - 1]?.jump(HOUR);
  const late = async () => {
    const times = await Promise.all(nodes.map((node) => stage.admin(node).time()));
    return times.every(([seconds]) => Number(seconds) * 1_000 > before + HOUR / 2);
  };
  await until(late);
}

const holdsAt = async (): Promise<number> => (await stage.holders()).filter((one) => one !== null).length;

/** A client that holds the lock by so many nodes, the first ones, and one that reaches all of them. */
async function scene(nodes: 3 | 5) {
  const first = await stage.join({ leaseTime: LEASE }, "proxies");
  const second = await stage.join({ leaseTime: LEASE });
  // Every node has had a hold of this client, so nothing is on its way to one that is left alone now.
  await first.locks.lock(stage.name).withLock(() => until(async () => (await holdsAt()) === 5));
  await until(async () => (await holdsAt()) === 0);
  for (let node = nodes + 1; node <= 5; node++) await stage.cutOff(node, first);
  const lease = await first.locks.lock(stage.name).lock();
  await until(async () => (await holdsAt()) === nodes);
  return { lease, others: second.locks.lock(stage.name) };
}

describe("a clock that jumps forward by an hour, of five masters", () => {
  it("one of the three that hold a lease: two holders until the first one's renewal, and the fence refuses its late write", async ({
    annotate,
  }) => {
    const { lease, others } = await scene(3);
    const { redis } = await parties.join();
    const resource = freshName("fenced");
    const lost = new Promise<number>((resolve) => {
      lease.signal.addEventListener("abort", () => resolve(performance.now()), { once: true });
    });
    await jump(3);
    const second = await until(() => others.tryLock());
    const since = performance.now();
    // Two holders at one time: this is what the article says.
    expect([lease.held, second.held, second.token > lease.token]).toEqual([true, true, true]);
    await fencedSet(redis, resource, "second", { fence: second.token });
    expect(await failure(fencedSet(redis, resource, "first", { fence: lease.token }))).toBeInstanceOf(
      StaleTokenError,
    );
    expect(lease.held).toBe(true); // it did not know better
    const both = (await lost) - since;
    await annotate(
      `both believed that they held the lock for ${Math.round(both)} ms, of a lease of ${LEASE} ms`,
    );
    expect(both).toBeLessThan(LEASE);
    expect(lease.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    expect([second.held, await redis.get(resource)]).toEqual([true, "second"]);
    await second.unlock();
  });

  it("one or two of the five that hold a lease: no other holder", async () => {
    for (const nodes of [[3], [2, 3]]) {
      const { lease, others } = await scene(5);
      await jump(...nodes);
      expect([await others.tryLock(), lease.held]).toEqual([null, true]);
      // Its renewal brings the lease back to them.
      await until(async () => (await holdsAt()) === 5);
      expect([await others.tryLock(), lease.held]).toEqual([null, true]);
      await lease.unlock();
    }
  });

  it("three of the five at once: two holders, and the tokens show which is later", async () => {
    const { lease, others } = await scene(5);
    await jump(1, 2, 3);
    const second = await until(() => others.tryLock());
    expect([lease.held, second.held, second.token > lease.token]).toEqual([true, true, true]);
    await until(() => lease.signal.aborted);
    await second.unlock();
  });
});
