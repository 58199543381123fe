// On a real Redis; in virtual time: test/world/directed/read-write-joins.test.ts.

import { expect, it } from "vitest";
import type { Lease, LockClient, ReadWriteLock } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Readers that come into a hold of their process, at every moment at which the answer that lets
// them in may be old or wrong. `near` is behind a proxy, `far` is another process.

const stage = new Stage();

const pair = (): { near: LockClient; mine: ReadWriteLock; theirs: ReadWriteLock } => {
  const name = freshName();
  const near = stage.near.locks;
  return { near, mine: near.readWriteLock(name), theirs: stage.far.locks.readWriteLock(name) };
};
const waiting = (rw: ReadWriteLock, count: number): Promise<unknown> =>
  until(async () => (await rw.inspect()).waiters.length === count, { what: `${count} waiting` });
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
/** Behind this a reader has to ask. */
const closes = (): Promise<void> => pause(30);
/** A first caller has learned the rights of the connection, and loaded the scripts. */
const learn = async ({ mine, theirs }: { mine: ReadWriteLock; theirs: ReadWriteLock }): Promise<void> => {
  for (const rw of [mine, theirs]) for (const lock of [rw.read, rw.write]) await lock.withLock(() => {});
  const held = [await mine.read.lock()];
  await closes();
  held.push(await mine.read.lock());
  for (const lease of held) await lease.unlock();
};
const commandsOf = (name: string): number =>
  stage.proxy.commands.filter(({ command }) => command.some((word) => word.includes(`{${name}}`))).length;
const unlockAll = async (leases: readonly (Lease | null)[]): Promise<void> => {
  for (const lease of leases) await lease?.unlock();
};

it("within 25 ms of a request a reader enters without a command, and later ones send one together", async () => {
  const { mine, theirs } = pair();
  await learn({ mine, theirs });
  const first = await mine.read.lock();
  stage.proxy.record();
  const others: (Lease | null)[] = [];
  // Once more on a machine that stood still for 25 ms.
  await until(
    async () => {
      others.push(await mine.read.lock());
      const before = commandsOf(mine.name);
      others.push(await mine.read.tryLock(), await mine.read.tryLock());
      return commandsOf(mine.name) === before;
    },
    { what: "readers that enter without a command" },
  );
  const direct = commandsOf(mine.name);
  await closes();
  others.push(...(await Promise.all(Array.from({ length: 20 }, () => mine.read.lock()))));
  expect(commandsOf(mine.name) - direct).toBe(1);
  expect((await theirs.inspect()).holders).toHaveLength(1);
  await unlockAll([first, ...others]);
});

it("a late answer admits no reader: its time counts from when the request was sent", async () => {
  const { mine, theirs } = pair();
  await learn({ mine, theirs });
  const first = await mine.read.lock();
  await closes();
  // The question is executed, and its answer is on its way.
  stage.proxy.record();
  stage.proxy.delay(300, { direction: "to client", which: "commands" });
  const joins = mine.read.lock();
  await until(() => commandsOf(mine.name) > 0);
  const write = theirs.write.lock();
  await waiting(theirs, 1);
  const second = await joins;
  stage.proxy.delay(0);
  // It came while nobody waited. The next one comes behind the writer.
  expect(await mine.read.tryLock()).toBeNull();
  await unlockAll([first, second]);
  await (await write).unlock();
});

it("a join under way counts as a user: what the last reader gives back stays until it is answered", async () => {
  const { mine, theirs } = pair();
  await learn({ mine, theirs });
  const first = await mine.read.lock();
  const [before] = (await theirs.inspect()).holders;
  await closes();
  const joins = mine.read.lock();
  await first.unlock();
  const second = await joins;
  expect(second.held).toBe(true);
  expect((await theirs.inspect()).holders).toMatchObject([{ id: before?.id }]);
  expect(await theirs.write.tryLock()).toBeNull();
  await second.unlock();
  const leaving = new AbortController();
  const third = await mine.read.lock();
  await closes();
  const gone = expect(mine.read.lock({ signal: leaving.signal })).rejects.toThrow("enough");
  await third.unlock();
  leaving.abort(new Error("enough"));
  await gone;
  await (await theirs.write.lock({ wait: 30_000 })).unlock();
});

it("a join that finds its hold gone reports the loss to all users, and waits for a hold of its own", async () => {
  const { mine, theirs } = pair();
  await learn({ mine, theirs });
  const users = [await mine.read.lock(), await mine.read.lock()];
  await closes();
  await stage.far.redis.del(`holdfast:rw:{${mine.name}}`);
  const writer = await theirs.write.lock();
  const joins = mine.read.lock();
  await until(() => users.every(({ signal }) => signal.aborted));
  for (const user of users)
    await expect(user.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
  await waiting(theirs, 1);
  await writer.unlock();
  const next = await joins;
  expect(next.token).toBeGreaterThan(writer.token);
  await next.unlock();
});

it("if a join's outcome is unknown its users go on, and no other caller enters", async () => {
  const name = freshName();
  const { locks } = await stage.join({ url: stage.proxy.url, client: { replyTimeout: 2_000 } });
  const mine = locks.readWriteLock(name);
  const theirs = stage.far.locks.readWriteLock(name);
  await learn({ mine, theirs });
  const first = await mine.read.lock();
  await closes();
  const stalled = stage.proxy.stall(named("evalsha"));
  const joins = expect(mine.read.lock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
  await stalled;
  await joins;
  // Sent behind the join: when it is given up, the join has been, and not only its caller.
  await expect(mine.inspect()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
  stage.proxy.thaw();
  const second = await mine.read.lock();
  expect(first.held).toBe(true);
  expect((await theirs.inspect()).holders).toHaveLength(2);
  await unlockAll([first, second]);
  await (await theirs.write.lock({ wait: 30_000 })).unlock();
});

it("an answer that is read after the grant takes nothing away from the readers that it admitted", async () => {
  const { mine, theirs } = pair();
  await stage.warm(stage.near);
  await learn({ mine, theirs });
  const writer = await theirs.write.lock();
  // The grant comes by message, before the answer to the command that has queued.
  stage.proxy.delay(2_000, { direction: "to client", which: "commands" });
  const reads = mine.read.lock();
  await waiting(theirs, 1);
  await writer.unlock();
  const reader = await reads;
  // That answer never comes: the command is sent again, and the hold is "mine" by now.
  stage.proxy.delay(0);
  stage.proxy.cut("commands");
  await mine.inspect();
  await mine.inspect();
  expect(await theirs.write.tryLock()).toBeNull();
  await reader.unlock();
  await (await theirs.write.lock({ wait: 30_000 })).unlock();
});

it("a writer of the same process is not overtaken by readers that its process could admit", async () => {
  const { mine, theirs } = pair();
  await stage.warm(stage.near);
  await learn({ mine, theirs });
  const first = await mine.read.lock();
  const order: string[] = [];
  const write = mine.write.lock().then(async (lease) => {
    order.push("writer");
    await lease.unlock();
  });
  const reads = [1, 2].map(() =>
    mine.read.lock().then(async (lease) => {
      order.push("reader");
      await lease.unlock();
    }),
  );
  await waiting(theirs, 2);
  await first.unlock();
  await Promise.all([write, ...reads]);
  expect(order).toEqual(["writer", "reader", "reader"]);
});

it("neither side starves while the other one never pauses", async () => {
  const { mine, theirs } = pair();
  let [reads, writes, isOver] = [0, 0, false];
  const reader = async (): Promise<void> => {
    while (!isOver) await mine.read.withLock(() => pause(1)).then(() => reads++);
  };
  const writer = async (): Promise<void> => {
    while (!isOver) await theirs.write.withLock(() => pause(1)).then(() => writes++);
  };
  const all = [reader(), reader(), reader(), reader(), writer(), writer()];
  await until(() => reads > 40 && writes > 40);
  isOver = true;
  await Promise.all(all);
});
