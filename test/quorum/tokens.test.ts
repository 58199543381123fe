import { describe, expect, it } from "vitest";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { failure } from "../contract/observe.ts";
import { type QuorumParty, QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

const HOUR = 3_600_000_000; // µs

describe("tokens of a quorum", () => {
  const stage = new QuorumStage(3);
  const nodes = [1, 2, 3];
  const visit = (party: QuorumParty) =>
    party.locks.lock(stage.name).withLock({ wait: 5_000 }, ({ token }) => token);
  const setClock = (node: number, micros: number) => stage.admin(node).set(stage.clock, `${micros}`);
  const clocks = () =>
    Promise.all(nodes.map(async (node) => Number(await stage.admin(node).get(stage.clock))));
  const expectGrowth = (tokens: number[]) => {
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b)); // strictly
  };

  it("grow over local hand-offs, and over changes of the client", async () => {
    const parties = [await stage.join(), await stage.join()];
    const tokens: number[] = [];
    const lock = (n: number) => parties[n % 2]?.locks.lock(stage.name);
    await Promise.all(
      Array.from({ length: 60 }, (_, n) => lock(n)?.withLock(({ token }) => void tokens.push(token))),
    );
    expect(tokens.length).toBe(60);
    expectGrowth(tokens);
  });

  it("are stored at a majority with their reserve for local hand-offs before the caller has them", async () => {
    const { locks } = await stage.join({ localHandoffs: 5 });
    const lease = await locks.lock(stage.name).lock();
    const all = await clocks();
    const stored = all.filter((last) => last >= lease.token + 5);
    expect(stored.length, `${all} with ${lease.token}`).toBeGreaterThanOrEqual(2);
    expect((await locks.lock(stage.name).inspect()).token).toBe(lease.token);
    await lease.unlock();
  });

  it("are agreed on if the nodes' votes differ", async () => {
    const party = await stage.join();
    const ahead = Date.now() * 1_000 + 10 * HOUR;
    // The first two nodes vote first, as a rule: the token is the first one's.
    for (const node of nodes) await setClock(node, ahead - node * HOUR);
    const lease = await party.locks.lock(stage.name).lock();
    const stored = (await clocks()).filter((last) => last >= lease.token);
    expect(stored.length).toBeGreaterThanOrEqual(2);
    // Also at a node that voted late, as soon as it has been told.
    const isAgreed = async () => (await party.locks.lock(stage.name).inspect()).token === lease.token;
    await until(isAgreed, { what: "the agreed token" });
    await lease.unlock();
  });

  it.each(nodes)("grow whichever majority comes next, with node %i down", async (down) => {
    const [first, second] = [await stage.join(), await stage.join()];
    await visit(second); // it knows the nodes, and not what comes
    const ahead = Date.now() * 1_000 + 10 * HOUR;
    for (const node of nodes) await setClock(node, ahead - node * HOUR);
    // The release tells every node the token: what counts here is what they knew before it.
    const lease = await first.locks.lock(stage.name).lock();
    await until(async () => !(await stage.holders()).includes(null));
    for (const node of nodes) await stage.admin(node).del(stage.key());
    await stage.server(down).kill();
    const token = await visit(second);
    expect(token).toBeGreaterThan(lease.token);
    await expect(lease.unlock()).rejects.toThrow();
  });

  it("go on from the largest that any node of the majority knows, and a release informs the others", async () => {
    const [first, second] = [await stage.join(), await stage.join()];
    const ahead = Date.now() * 1_000 + 50 * HOUR;
    await setClock(3, ahead);
    await stage.server(1).kill();
    const token = await visit(first);
    expect(token).toBe(ahead + 1);
    await stage.server(1).restart();
    for (const party of [first, second])
      for (const node of party.nodes) await until(() => node.status === "ready");
    expect(await visit(first)).toBeGreaterThan(token);
    // a majority's word is enough for the caller
    await until(async () => Math.min(...(await clocks())) > token);
    await stage.server(3).kill(); // the only one that was ahead by itself
    expectGrowth([token, await visit(second), await visit(first), await visit(second)]);
  });

  it("are not agreed on by a vote that came after another lease", async () => {
    const [near, far] = [await stage.join({ nodeTimeout: 3_000 }, "proxies"), await stage.join()];
    for (const party of [near, far]) await visit(party);
    await stage.free();
    const ahead = Math.max(...(await clocks())) + HOUR;
    for (const node of [1, 2]) await setClock(node, ahead + node * 1_000);
    stage.proxy(3).partition("commands"); // the vote
    const stalled = stage.proxy(2).stall(runsQuorum("agree"));
    const attempt = failure(near.locks.lock(stage.name).lock());
    await stalled;
    await stage.admin(2).del(stage.key());
    const token = await visit(far);
    await until(async () => (await stage.holders()).slice(1).every((holder) => holder === null));
    for (const node of [2, 3]) stage.proxy(node).thaw();
    // Nodes 1 and 3 have the hold, but what was voted for at 1 and 2 is no larger than the other one's token.
    expect(String(await attempt)).toContain("lost the lock before its token was agreed on");
    expect(await visit(near)).toBeGreaterThan(token);
  });

  it("are not agreed on at a node without the hold", async () => {
    const admin = stage.admin(1);
    const agree = (hold: string) =>
      admin.eval(quorumLua.agree.lua, 2, stage.key(), stage.clock, hold, `${50 * HOUR}`, `${50 * HOUR}`);
    await setClock(1, 1);
    expect(await agree("me")).toEqual([codes.GONE, `${50 * HOUR}`]);
    await admin.set(stage.key(), "you 7", "PX", 1_000);
    expect(await agree("me")).toEqual([codes.TAKEN, `${50 * HOUR}`]);
    await admin.set(stage.key(), `me ${60 * HOUR}`, "PX", 1_000);
    expect(await agree("me")).toEqual([codes.STALE, `${50 * HOUR}`]);
    expect(await admin.get(stage.clock)).toBe("1");
    await admin.del(stage.key());
  });
});
