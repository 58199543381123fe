import { expect, it, onTestFinished, vi } from "vitest";
import { countedLua as lua } from "../../src/redis/lua.generated.ts";
import { LockManager } from "../../src/runtime/lock-manager.ts";
import { Actor } from "../support/actor.ts";
import { block } from "../support/block.ts";
import { freshName } from "../support/fixture.ts";
import { heard, KeptReadsStage } from "../support/kept-reads.ts";
import { STAY_FRESH } from "../support/stays.ts";
import { until } from "../support/until.ts";

// How the time of reads that are kept ends where something else happens than a recall.

const stage = new KeptReadsStage();

/** So long that what Redis has said is too old for a reader that does not ask. */
const late = async (): Promise<void> => {
  const end = performance.now() + STAY_FRESH;
  await until(() => performance.now() > end);
};

it("cached reads end with their process, also if the server has forgotten the scripts", async () => {
  const { far, server } = stage;
  const connections = async (): Promise<number> => `${await far.redis.client("LIST")}`.split("\n").length;
  const before = await connections();
  const actor = await Actor.start({ url: server.url, client: { linger: 1_000 } });
  const names = [freshName(), freshName(), freshName()];
  const held = (): Promise<number> =>
    Promise.all(names.map((name) => far.redis.hlen(`holdfast:rw:{${name}}`))).then((all) =>
      all.reduce((sum, one) => sum + one),
    );
  // All of them at a time, however slow this machine is.
  await until(async () => {
    for (const name of names) {
      const { handle } = (await actor.call("acquire", "readLock", name)) ?? { handle: 0 };
      await actor.call("unlock", handle);
    }
    return (await held()) === 2 * names.length;
  });
  await far.redis.script("FLUSH");
  await actor.call("die", "exit");
  await actor.exit;
  // The server has read all that came before the ends of its connections.
  await until(async () => (await connections()) <= before);
  expect(await held()).toBe(0);
});

it("a loss is reported, also when no reader is inside", async () => {
  const { near, far, key } = stage;
  const { read } = await stage.keep();
  const lost = heard(near, "lost");
  await far.redis.del(key);
  await late();
  await read.withLock(() => {});
  expect(lost).toMatchObject([{ error: { reason: "gone" } }]);
  await until(() => near.locks.stats().kept === 1);
  await far.redis.eval(
    lua.forceRelease.lua,
    4,
    key,
    `${key}:queue`,
    `${key}:clients`,
    `${key}:clock`,
    "r",
    "",
  );
  await until(() => near.locks.stats().kept === 0);
  expect(lost).toMatchObject([{}, { kind: "read", error: { reason: "revoked" } }]);
});

it("cached reads end by force-release: they are recalled first, so no reader enters beside the writer that follows", async () => {
  const { far, proxy } = stage;
  const { read } = await stage.keep();
  proxy.delay(10, { which: "subscribers" });
  expect(await stage.pairOf(far).read.forceUnlock()).toBe(true);
  const writer = await stage.pairOf(far).write.tryLock();
  expect([writer?.held, await read.tryLock()]).toEqual([true, null]);
  await writer?.unlock();
});

it("a reader that waits too long for a turn of the event loop asks Redis", async () => {
  const { far, key } = stage;
  const { read } = await stage.keep();
  const got = await until(async () => {
    const first = await read.lock();
    // Longer than readers may come in without a turn.
    block(2);
    const resting = read.tryLock();
    const isAtOnce = await Promise.race([resting.then(() => true), Promise.resolve().then(() => false)]);
    const deleted = far.redis.del(key);
    block(2 * STAY_FRESH);
    const second = await resting;
    await deleted;
    await first.unlock().catch(() => {});
    await second?.unlock().catch(() => {});
    // Else this machine stood still in between.
    return !isAtOnce && second && { first, second };
  });
  expect(got.second.token).toBeGreaterThan(got.first.token);
});

it("cached reads end when a writer of their own process has come meanwhile", async () => {
  const { near } = stage;
  const { read, write } = await stage.keep();
  const reader = await read.lock();
  const writing = write.lock();
  await reader.unlock();
  await (await writing).unlock();
  expect(near.locks.stats()).toMatchObject({ kept: 0, recalled: 0 });
});

it("reads that came by a grant are not cached, because a writer could not recall them", async () => {
  const { near, far } = stage;
  await stage.keep();
  const writer = await stage.pairOf(far).write.lock();
  const reads = [1, 2].map(() => stage.pairOf(near).read.lock());
  await until(async () => (await stage.pairOf(far).inspect()).waiters.length > 0, { what: "a reader" });
  await writer.unlock();
  for (const reader of await Promise.all(reads)) await reader.unlock();
  expect([near.locks.stats().kept, await stage.holders()]).toEqual([0, 0]);
  // The next one that comes by an answer is.
  await stage.pairOf(near).read.withLock(() => {});
  expect(near.locks.stats().kept).toBe(1);
});

it("nothing stays of the readers of a lock that only writers want, while other reads stay cached", async () => {
  const { near } = stage;
  await stage.keep();
  const left = vi.spyOn(LockManager.prototype, "left");
  onTestFinished(() => left.mockRestore());
  const name = freshName();
  const { write } = near.locks.readWriteLock(name);
  await write.withLock(() => {});
  const manager = left.mock.contexts[0] as LockManager;
  const names = [...manager.resources()].map((lock) => lock.name);
  expect(names).toEqual([stage.lock.name]);
});
