import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import { optimistic } from "../../src/optimistic/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { others, rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import type { Maker } from "../support/permit.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { running } from "../support/result-runs.ts";
import { servePage } from "../support/served-page.ts";
import { until } from "../support/until.ts";
import { useAll } from "./use-all.ts";

// Users with exactly the rights of docs/operating.md can do all that they are for, and are never
// refused: not even what a client library asks for by itself, which nobody sees but the operator,
// in ACL LOG.

const own = new OwnServer();
const { parties } = own;

/** Makes the user, and connects as it. What it was refused fails the test at its end. */
async function as(rules: readonly string[], db = 0) {
  await own.admin.call("ACL", "LOG", "RESET");
  const user = await own.addUser(...rules);
  onTestFinished(async () => expect(await own.admin.call("ACL", "LOG")).toEqual([]));
  return async () => {
    // Without PING, which the user has no right to.
    const party = await parties.join({ url: own.url, redis: { ...user, db, lazyConnect: true } });
    // A call that does not wait gives a connection that is still being made 500 ms.
    await party.redis.connect();
    return party;
  };
}

describe("a user with exactly the documented rights can use", () => {
  it.each<[Maker, readonly string[]]>([
    ["lock", rights.handoff],
    ["fairLock", rights.handoff],
    ["redissonLock", rights.redisson],
    ["redissonFencedLock", rights.redissonFenced],
    ["spinLock", rights.spin],
    ["permit", rights.counted],
    ["writeLock", rights.readWrite],
  ])("%s", async (kind, rules) => {
    const join = await as(rules);
    await useAll(kind, await join(), await join());
  });

  it("readers beside a writer", async () => {
    const join = await as(rights.readWrite);
    const [one, other] = [await join(), await join()].map(({ locks }) => locks);
    const name = freshName();
    const reads = [await one?.readWriteLock(name).read.lock(), await other?.readWriteLock(name).read.lock()];
    const writer = other?.readWriteLock(name).write.lock();
    await until(async () => (await one?.readWriteLock(name).inspect())?.waiters.length === 1);
    for (const read of reads) await read?.unlock();
    await (await writer)?.unlock();
  });

  it("another database", async () => {
    const join = await as([...rights.handoff, ...rights.database], 1);
    await useAll("lock", await join(), await join());
  });

  it("an election that it only observes", async () => {
    const { locks } = await (await as(rights.observer))();
    const { locks: others } = await parties.join({ url: own.url });
    const name = freshName();
    const term = await others.election(name).campaign({ value: "a" });
    const seen = locks.election(name).observe();
    expect((await seen.next()).value).toMatchObject({ value: "a" });
    expect(await locks.election(name).leader()).toMatchObject({ value: "a" });
    await term.resign();
    expect((await seen.next()).value).toBeNull();
    await seen.return?.();
  });

  it.each([false, true])("list, with Redisson's locks too: %s", async (isAll) => {
    const { locks } = await (await as(isAll ? rights.listAll : rights.list))();
    const { locks: others } = await parties.join({ url: own.url });
    const name = freshName();
    await others.lock(name).lock();
    await others.semaphore(name, { permits: 2 }).acquire();
    await others.readWriteLock(name).read.lock();
    await redissonLock(others, name).lock();
    const found: string[] = [];
    const kinds = ["lock", "readWrite", "semaphore", "election", "redisson"] as const;
    const kind = isAll ? kinds : kinds.slice(0, 4);
    for await (const one of locks.list({ match: name, kind })) found.push(one.kind);
    expect(found.sort()).toEqual(["lock", "readWrite", ...(isAll ? ["redisson"] : []), "semaphore"]);
  });

  it("the page with actions", async () => {
    const locksToo = rights.handoff.filter((rule) => !/^(reset|-)/.test(rule));
    const { redis } = await (await as([...rights.page, ...locksToo]))();
    const served = await servePage(redis, { actions: ["break", "recall"] });
    onTestFinished(() => served.stop());
    const { locks: others } = await parties.join({ url: own.url });
    const { name } = await others.lock(freshName()).lock();
    const holder = (await others.lock(name).inspect()).holder?.id;
    const headers = {
      "content-type": "application/json",
      "x-holdfast": "page",
      origin: new URL(served.url).origin,
    };
    for (const [action, done] of [
      ["recall", false],
      ["break", true],
    ]) {
      const body = JSON.stringify({ action, kind: "lock", name, holder, mode: null });
      const answer = await fetch(`${served.url}?part=act`, { method: "POST", headers, body });
      expect(await answer.json()).toMatchObject({ done });
    }
  });

  it("check()", async () => {
    const { locks } = await (await as(rights.handoff))();
    expect(await locks.check()).toMatchObject({ ok: true, problems: [] });
  });

  it("election", async () => {
    const join = await as(rights.election);
    const [a, b] = [(await join()).locks, (await join()).locks];
    const errors: Error[] = [];
    for (const locks of [a, b]) locks.on("error", (error) => errors.push(error));
    const name = freshName();
    const seen = b.election(name).observe();
    expect((await seen.next()).value).toBeNull();
    const term = await a.election(name, { lease: 600 }).campaign({ value: "a" });
    expect((await seen.next()).value).toMatchObject({ value: "a" });
    let renewals = 0;
    a.on("renew", () => renewals++);
    await until(() => renewals > 0);
    const next = b.election(name).campaign({ value: "b" });
    await until(() => own.admin.exists(`holdfast:election:{${name}}:queue`));
    await term.resign();
    await (await next).resign();
    await seen.return?.();
    expect(errors).toEqual([]);
  });

  it("once", async () => {
    const { locks } = await (await as(rights.once))();
    const name = freshName();
    const body = async ({ signal }: { signal: AbortSignal }) => {
      let renewals = 0;
      locks.on("renew", () => renewals++);
      await until(() => renewals > 0);
      return signal.aborted;
    };
    const options = { every: 60_000, lease: 1_500 };
    expect(await locks.runOnce(name, options, body)).toEqual({ ran: true, value: false });
    expect(await locks.runOnce(name, options, body)).toMatchObject({ ran: false });
  });

  it("remember", async () => {
    const join = await as(rights.handoff);
    const [a, b] = [(await join()).locks, (await join()).locks];
    const [name, keep] = [freshName(), 60_000];
    let renewals = 0;
    a.on("renew", () => renewals++);
    const first = await running(a, name, { lease: 1_500 });
    const second = b.remember(name, { keep }, () => expect.unreachable());
    await until(() => own.admin.exists(`holdfast:remember:{${name}}:queue`));
    await until(() => renewals > 0);
    first.ran(1);
    for (const got of [await first.ended, await second, await b.remembered(name)])
      expect(got).toMatchObject({ value: 1 });
    expect(await b.forget(name)).toBe(true);
    const stopped = await running(a, name);
    expect(await b.stopRun(name)).toBe(true);
    expect(await stopped.ended).toMatchObject({ code: "LOCK_LOST" });
    await expect(a.remember(name, { keep }, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  it("multiLock", async () => {
    const join = await as(rights.handoff);
    const [a, b] = [await join(), await join()];
    const names = [freshName(), freshName()];
    const held = await a.locks.multiLock(names).lock();
    const waiter = b.locks.multiLock(names).lock();
    expect(await b.locks.multiLock(names).tryLock(50)).toBeNull();
    await held.extend(60_000);
    await held.unlock();
    await (await waiter).unlock();
  });

  it("fencedSet and fencedEval", async () => {
    const { redis } = await (await as(rights.fencedSet))();
    const key = freshName();
    const fence = Date.now() * 1_000;
    await fencedSet(redis, key, "a", { fence });
    await fencedEval(redis, "return redis.call('SET', KEYS[1], 'b')", { keys: [key], fence });
    await expect(fencedSet(redis, key, "c", { fence: fence - 1 })).rejects.toMatchObject({
      code: "STALE_TOKEN",
    });
    expect(await redis.get(key)).toBe("b");
  });

  it("optimistic", async () => {
    const { redis } = await (await as(rights.optimistic))();
    const key = freshName();
    const tries = await optimistic(redis, [key], async (tx) => {
      const value = await tx.redis.get(key);
      if (value === null) await own.admin.set(key, "theirs"); // a conflict, once
      tx.multi.set(key, `${value}, mine`);
      return value;
    });
    expect([tries, await redis.get(key)]).toEqual(["theirs", "theirs, mine"]);
  });
});

it("another application's user with the protective rules reaches no locks", async () => {
  const rules = ["reset", "on", ">change-me", "allcommands", "allkeys", "allchannels", ...others];
  await own.admin.call("ACL", "SETUSER", "other", ...rules);
  const user = { username: "other", password: "change-me", lazyConnect: true };
  const { redis } = await parties.join({ url: own.url, redis: user });
  const { locks } = await parties.join({ url: own.url });
  const { name } = await locks.lock(freshName()).lock();
  await redis.set("other:key", "theirs");
  for (const [command, ...args] of [
    ["GET", `holdfast:{${name}}`],
    ["DEL", `holdfast:{${name}}`],
    ["PUBLISH", `holdfast:client:${locks.id}`, "x"],
    ["SUBSCRIBE", `holdfast:client:${locks.id}`],
    ["KEYS", "*"],
    ["SLOWLOG", "GET"],
    ["MONITOR"],
  ] as const)
    await expect(redis.call(command, ...args)).rejects.toThrow("NOPERM");
});

describe("at each master of a quorum", () => {
  const stage = new QuorumStage(3);

  it("the documented rights are enough", async () => {
    const nodes = async () => {
      const user = { username: "quorum", password: "change-me" };
      for (const node of [1, 2, 3]) {
        await stage.admin(node).call("ACL", "LOG", "RESET");
        await stage
          .admin(node)
          .call("ACL", "SETUSER", user.username, "reset", "on", `>${user.password}`, ...rights.quorum);
      }
      const all = [1, 2, 3].map((node) => new Redis({ port: stage.server(node).port, ...user }));
      const locks = createQuorumClient(all, { restartDelay: 0, leaseTime: 3_000 });
      onTestFinished(async () => {
        await locks.close({ grace: 0 });
        for (const redis of all) redis.disconnect();
      });
      return locks;
    };
    const [a, b] = [await nodes(), await nodes()];
    const errors: Error[] = [];
    for (const locks of [a, b]) locks.on("error", (error) => errors.push(error));
    let renewals = 0;
    a.on("renew", () => void renewals++);
    const held = await a.lock(stage.name).lock();
    const waiter = b.lock(stage.name).lock();
    await until(() => renewals > 0);
    await held.extend(10_000);
    expect((await b.lock(stage.name).inspect()).token).toBe(held.token);
    await held.unlock();
    await (await waiter).unlock();
    expect(errors).toEqual([]);
    for (const node of [1, 2, 3]) expect(await stage.admin(node).call("ACL", "LOG")).toEqual([]);
  });
});
