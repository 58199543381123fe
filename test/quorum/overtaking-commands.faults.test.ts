import { expect, it } from "vitest";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

// A majority grants the lock, and its caller gives it back, before the last node's vote was even sent there.

const stage = new QuorumStage(3);

it("an unlock that overtakes the acquire at a node that does not know the script leaves nothing there", async () => {
  const near = await stage.join({}, "proxies");
  await stage.warm(near);
  await stage.admin(3).script("FLUSH");
  await stage.admin(3).script("LOAD", quorumLua.release.lua); // known, unlike `acquire`: it is not sent twice
  stage.proxy(3).delay(50);
  stage.proxy(3).record();
  await near.locks.lock(stage.name).withLock(() => {});
  // The vote, and not what may still be taken back of the first lease.
  const isVote = ([name, text]: readonly string[]) => name === "eval" && text === quorumLua.acquire.lua;
  const isRelease = runsQuorum("release");
  const sent = () =>
    stage
      .proxy(3)
      .commands.map(({ command }) => (isVote(command) ? "vote" : isRelease(command) ? "release" : ""))
      .filter((what) => what !== "");
  await until(() => sent().length === 3);
  expect(sent()).toEqual(["release", "vote", "release"]);
  await stage.free();
});

it("a vote that is sent again over a new connection is not sent whole after its release", async () => {
  const near = await stage.join({}, "proxies");
  await stage.warm(near);
  await stage.admin(3).script("FLUSH");
  // A node that has restarted is asked for no vote, and releases are sent to it: known, unlike `acquire`.
  for (const { lua } of [quorumLua.introduce, quorumLua.release]) await stage.admin(3).script("LOAD", lua);
  stage.proxy(3).delay(40, { direction: "to client" }); // that `acquire` is not known
  stage.proxy(3).record();
  const dropped = stage.proxy(3).dropCommand(runsQuorum("acquire"));
  const lease = await near.locks.lock(stage.name).lock();
  await dropped;
  const [, , third] = near.nodes;
  await until(() => third?.status !== "ready");
  await new Promise((resolve) => third?.once("ready", resolve));
  await lease.unlock();
  await near.locks.close();
  await third?.ping(); // behind whatever is still sent there
  const sent = stage.proxy(3).commands.map(({ command }) => command);
  expect([sent.filter(runsQuorum("acquire")).length, sent.some(runsQuorum("release"))]).toEqual([2, true]);
  await third?.ping();
  expect(await stage.holders()).toEqual([null, null, null]);
});

it("an unlock after a late vote is one release, also if a token was agreed on meanwhile", async () => {
  const near = await stage.join({}, "proxies");
  await stage.warm(near);
  for (const node of [1, 2])
    await stage.admin(node).set(stage.clock, `${(Date.now() + node * 60_000) * 1_000}`);
  stage.proxy(3).delay(50);
  stage.proxy(3).record();
  const lease = await near.locks.lock(stage.name).lock();
  const sent = (script: Parameters<typeof runsQuorum>[0]) =>
    stage.proxy(3).commands.filter(({ command }) => runsQuorum(script)(command)).length;
  await until(async () => sent("agree") === 1 && (await stage.holders())[2] !== null);
  const start = performance.now();
  await until(() => performance.now() - start > 300); // its vote has come back: that takes 100 ms
  const before = sent("release");
  await lease.unlock();
  await near.locks.close(); // waits for what is still to be taken back
  expect(sent("release") - before).toBe(1);
});

it("an unlock that overtakes the introduction of a node leaves nothing there", async () => {
  const near = await stage.join({}, "proxies");
  stage.proxy(3).delay(50);
  stage.proxy(3).record();
  await near.locks.lock(stage.name).withLock(() => {});
  const ran = (script: Parameters<typeof runsQuorum>[0]) => () =>
    stage.proxy(3).commands.some(({ command }) => runsQuorum(script)(command));
  await until(ran("acquire"));
  await stage.free();
});

it.each(["first", "second"])(
  "a copy of a client's %s vote that comes after the last waiter left is not executed",
  async (which) => {
    const near = await stage.join({}, "proxies");
    if (which === "second") await stage.warm(near);
    const holding = stage.proxy(2).holdCommand(runsQuorum("acquire"));
    const start = performance.now();
    const lease = await near.locks.lock(stage.name).lock();
    const held = await holding;
    await lease.unlock();
    await until(() => performance.now() - start > 1_000); // more than `nodeTimeout`, less than `replyTimeout`
    await stage.free();
    const calls = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await stage.admin(2).info("commandstats"))?.[1] ?? 0);
    const before = await calls();
    await held.deliver();
    await until(async () => (await calls()) > before);
    expect(await stage.holders()).toEqual([null, null, null]);
  },
);

it("close() waits until everything is taken back there", async () => {
  const near = await stage.join({}, "proxies");
  stage.proxy(3).delay(50);
  await near.locks.lock(stage.name).withLock(() => {});
  await near.locks.close();
  expect(await stage.holders()).toEqual([null, null, null]);
});
