import { describe, expect, it } from "vitest";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { failure } from "../contract/observe.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

// A lease that its nodes have lost is told of as soon as that is certain, and nothing brings one
// back behind its release.

const stage = new QuorumStage(3);
const joins = () => stage.proxy(3).commands.filter(({ command }) => runsQuorum("join")(command)).length;

/** Its first lease has made the nodes known to it, and all of them are free. */
async function warm(options: Parameters<QuorumStage["join"]>[0] = {}) {
  const party = await stage.join(options, "proxies");
  await stage.warm(party);
  return party;
}

describe("a lease on two nodes, of which one has lost it", () => {
  it("is lost with the next renewal, also while the third node cannot be reached", async () => {
    const party = await warm();
    await stage.cutOff(3, party);
    const lease = await party.locks.lock(stage.name).lock();
    await stage.admin(2).del(stage.key());
    expect(await failure(lease.extend(30_000))).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    expect([lease.held, lease.signal.aborted]).toEqual([false, true]);
    await lease.unlock();
    await stage.free();
  });

  it("was lost before its release, also while the third node cannot be reached", async () => {
    const party = await warm();
    await stage.cutOff(3, party);
    const lease = await party.locks.lock(stage.name).lock();
    await stage.admin(2).del(stage.key());
    // The reason is not told where the third node's connection broke once more meanwhile.
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
    await stage.free();
  });

  it("is found lost by itself without a watchdog, with repeated requests to the third node", async () => {
    const party = await warm();
    await stage.admin(3).set(stage.key(), "somebody:1 1", "PX", 60_000);
    const lease = await party.locks.lock(stage.name).lock({ lease: 10_000 });
    await stage.admin(2).del(stage.key());
    await until(() => lease.signal.aborted, { timeout: 7_000, what: "the loss, before the lease is over" });
    // "taken" where the third node has answered before that is certain, else "gone".
    expect(lease.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await failure(lease.unlock());
    await stage.admin(3).del(stage.key());
    await stage.free();
  });
});

it("a lease without a watchdog that all nodes have lost is reported before its end", async () => {
  const party = await warm();
  const told: unknown[] = [];
  party.locks.on("lost", ({ error }) => told.push(error.reason));
  const lease = await party.locks.lock(stage.name).lock({ lease: 10_000 });
  await until(() => stage.isEverywhere());
  for (const node of [1, 2, 3]) await stage.admin(node).del(stage.key());
  await until(() => lease.signal.aborted, { timeout: 7_000, what: "the loss, before the lease is over" });
  expect(told).toEqual(["gone"]);
  await failure(lease.unlock());
});

it("a renewal that overtakes a vote leaves nothing after the release", async () => {
  const party = await warm({ nodeTimeout: 3_000 });
  await stage.admin(3).script("FLUSH");
  // Known, unlike `acquire`: that one is sent twice, and they come in between.
  for (const script of ["renew", "join", "release"] as const)
    await stage.admin(3).script("LOAD", quorumLua[script].lua);
  await stage.admin(3).set(stage.key(), "somebody:1 1", "PX", 60_000);
  stage.proxy(3).delay(40);
  stage.proxy(3).record();
  const lease = await party.locks.lock(stage.name).lock({ lease: 30_000 });
  await lease.extend(30_000);
  await until(() => joins() > 4);
  stage.proxy(3).delay(0);
  // Between two joinings, when the next one has its time.
  let [count, since] = [0, 0];
  await until(() => {
    if (joins() !== count) [count, since] = [joins(), performance.now()];
    return performance.now() - since > 100;
  });
  await lease.unlock();
  const [before, start] = [joins(), performance.now()];
  await stage.admin(3).del(stage.key());
  // the longest pause between two joinings, and some more
  await until(() => performance.now() - start > 2_100);
  expect(joins()).toBe(before);
  await stage.free();
});

it("exposed is not emitted for a node that was late once", async () => {
  const party = await warm();
  const told: unknown[] = [];
  party.locks.on("exposed", (event) => told.push(event));
  const lease = await party.locks.lock(stage.name).lock({ lease: 6_000 });
  await until(() => stage.isEverywhere());
  for (let i = 0; i < 3; i++) await lease.extend(6_000); // whatever voted late counts now
  const silent = stage.proxy(3).stall(runsQuorum("renew"));
  await silent; // the lease asks its nodes
  const start = performance.now();
  await until(() => performance.now() - start > 500); // longer than `nodeTimeout`
  stage.proxy(3).thaw();
  await until(() => performance.now() - start > 2_500);
  expect(told).toEqual([]);
  await lease.unlock();
  await stage.free();
});
