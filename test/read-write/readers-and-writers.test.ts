import { expect, it } from "vitest";
import type { Lease, LockClient, ReadWriteLock } from "../../src/index.ts";
import { awake } from "../support/awake.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// Readers together, writers alone, in the order in which they came.

const own = new OwnServer();

const join = async (client = {}): Promise<LockClient> =>
  (await own.parties.join({ url: own.url, client })).locks;

/** The same lock in several processes. */
const locks = async (count: number, options = {}): Promise<ReadWriteLock[]> => {
  const name = freshName();
  const clients = await Promise.all(Array.from({ length: count }, () => join()));
  return clients.map((client) => client.readWriteLock(name, options));
};
const waiting = (rw: ReadWriteLock, count: number): Promise<unknown> =>
  until(async () => (await rw.inspect()).waiters.length === count, {
    what: `${count} waiting`,
  });

it("local hand-offs are refused in the order of callers", async () => {
  const client = await join();
  expect(() => client.readWriteLock("name", { fair: true, localHandoffs: 3 })).toThrow(
    /localHandoffs must be 0: with fair/,
  );
  client.readWriteLock("name", { fair: true, localHandoffs: 0 });
  client.readWriteLock("name", { fair: false, localHandoffs: 3 });
});

it("readers of several processes overlap, a writer is alone, and inspections say so", async () => {
  const [a, b] = (await locks(2)) as [ReadWriteLock, ReadWriteLock];
  expect(await a.inspect()).toEqual({
    mode: null,
    holders: [],
    waiters: [],
    kept: false,
    at: expect.any(Number),
  });
  const readers = [await a.read.lock(), await b.read.lock(), await a.read.lock()];
  expect(readers.map(({ held }) => held)).toEqual([true, true, true]);
  expect(await b.write.tryLock()).toBeNull();
  expect(await b.write.tryLock(30)).toBeNull();
  await waiting(a, 0);
  expect(await a.inspect()).toMatchObject({ mode: "read", holders: [{}, {}] });
  expect(await Promise.all([a.read.isLocked(), a.write.isLocked()])).toEqual([true, false]);
  for (const one of readers) await one.unlock();
  const writer = await a.write.lock();
  expect(
    await Promise.all([a.read.tryLock(), b.read.tryLock(), b.write.tryLock(), a.write.tryLock()]),
  ).toEqual([null, null, null, null]);
  expect(await b.inspect()).toMatchObject({ mode: "write", holders: [{ token: writer.token }] });
  expect(await Promise.all([a.read.isLocked(), a.write.isLocked()])).toEqual([false, true]);
  await writer.unlock();
  expect(await own.admin.exists(`holdfast:rw:{${a.name}}`)).toBe(0);
  expect(JSON.parse(JSON.stringify(a))).toEqual({ name: a.name });
});

it("readers after a waiting writer wait for it, also in a process that reads; then all of them enter together", async () => {
  const [a, b, c] = (await locks(3)) as [ReadWriteLock, ReadWriteLock, ReadWriteLock];
  const first = await a.read.lock();
  const order: string[] = [];
  const enter = (who: string, entering: Promise<Lease>): Promise<Lease> =>
    entering.then((lease) => {
      order.push(who);
      return lease;
    });
  const write = enter("writer", b.write.lock());
  await waiting(a, 1);
  // Where readers are inside, for 25 ms more at the most.
  await until(async () => {
    const lease = await a.read.tryLock();
    await lease?.unlock();
    return !lease;
  });
  const behind = [
    enter("reader", a.read.lock()),
    enter("reader", a.read.lock()),
    enter("reader", c.read.lock()),
  ];
  await waiting(a, 3);
  const next = enter("last", c.write.lock());
  await waiting(a, 4);
  expect(order).toEqual([]);
  const since = awake();
  await first.unlock();
  const writer = await write;
  expect(order).toEqual(["writer"]);
  await writer.unlock();
  const readers = await Promise.all(behind);
  // Readers of one phase share a token, between those of the writers.
  expect(new Set(readers.map(({ token }) => token)).size).toBe(1);
  expect(readers[0]?.token).toBeGreaterThan(writer.token);
  expect(first.token).toBeLessThan(writer.token);
  for (const one of readers) await one.unlock();
  const last = await next;
  expect(last.token).toBeGreaterThan(readers[0]?.token ?? 0);
  await last.unlock();
  expect(order).toEqual(["writer", "reader", "reader", "reader", "last"]);
  expect(awake() - since).toBeLessThan(1_400); // by messages, not by looking again
});

it("readers of one process share a hold: at most one command in 25 ms, and one that ends it", async () => {
  const { locks: client, redis } = await own.parties.join({ url: own.url });
  const rw = client.readWriteLock(freshName());
  await client.check(); // it subscribes
  await rw.read.withLock(() => {});
  const count = await countCommands(redis);
  const since = performance.now();
  const stays = await rw.read.lock();
  let entered = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      // A busy machine needs longer than 300 ms for so many.
      while (performance.now() < since + 300 || entered <= 50) {
        await rw.read.withLock(() => new Promise((done) => setTimeout(done, 1)));
        entered++;
      }
    }),
  );
  expect((await rw.inspect()).holders).toHaveLength(1);
  const most = 3 + (performance.now() - since) / 25;
  await stays.unlock();
  const sent = await count.waiting();
  expect(sent).toBeLessThanOrEqual(most);
  expect(sent).toBeGreaterThan(3);
  expect(await own.admin.exists(`holdfast:rw:{${rw.name}}`)).toBe(0);
});

it("each reader's lease ends by itself, is renewed or extended for all, and the hold ends with the last one", async () => {
  const [a, b] = (await locks(2)) as [ReadWriteLock, ReadWriteLock];
  const long = await a.read.lock({ lease: 40_000 });
  const short = await a.read.lock({ lease: 300 });
  const kept = await a.read.lock({ maxHold: 400 });
  expect((await a.inspect()).holders.length).toBeLessThanOrEqual(2);
  await until(() => short.signal.aborted && kept.signal.aborted);
  expect([short.held, kept.held, long.held]).toEqual([false, false, true]);
  await expect(short.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await expect(kept.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  expect(await b.write.tryLock()).toBeNull();
  await long.extend(60_000);
  expect(Math.max(...(await a.inspect()).holders.map(({ remaining }) => remaining))).toBeGreaterThan(50_000);
  await long.unlock();
  await (await b.write.lock({ wait: 30_000 })).unlock();
});

it("a caller does not enter a hold that is much longer than it wants, or one that ends too soon", async () => {
  const [a] = (await locks(1)) as [ReadWriteLock];
  const long = await a.read.lock({ lease: 3_600_000 });
  const short = await a.read.lock();
  expect((await a.inspect()).holders).toHaveLength(2);
  const other = (await locks(1))[0] as ReadWriteLock;
  const first = await other.read.lock({ lease: 5_000 });
  const wants = await other.read.lock({ lease: 60_000 });
  expect(wants.remaining).toBeGreaterThan(50_000);
  expect((await other.inspect()).holders).toHaveLength(1);
  for (const one of [long, short, first, wants]) await one.unlock();
});

it("fair: every caller has a hold of its own, and they enter one by one in their order", async () => {
  const [a, b] = (await locks(2, { fair: true })) as [ReadWriteLock, ReadWriteLock];
  const writer = await a.write.lock();
  const order: number[] = [];
  const entering: Promise<unknown>[] = [];
  for (const [i, lock] of [a.read, b.write, a.read, a.read, a.write, b.read].entries()) {
    entering.push(
      lock.lock().then((lease) => {
        order.push(i);
        return lease.unlock();
      }),
    );
    await waiting(a, i + 1);
  }
  await writer.unlock();
  await Promise.all(entering);
  expect(order.map((i) => (i === 2 || i === 3 ? 2 : i))).toEqual([0, 1, 2, 2, 4, 5]);
});

it("a shared hold that is lost is lost for all its users", async () => {
  const [a, b] = (await locks(2)) as [ReadWriteLock, ReadWriteLock];
  const blocker = await b.write.lock();
  const readers = [a.read.lock(), a.read.lock({ lease: 20_000 })]; // so that this client listens
  await waiting(a, 1);
  await blocker.unlock();
  const held = await Promise.all(readers);
  expect(await b.read.forceUnlock({ label: "me" })).toBe(true);
  await until(() => held.every(({ signal }) => signal.aborted));
  for (const one of held)
    await expect(one.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "revoked", by: "me" });
  expect(await b.write.forceUnlock()).toBe(false);
  const again = [await a.read.lock(), await a.read.lock()];
  await own.admin.del(`holdfast:rw:{${a.name}}`);
  await expect(again[0]?.extend(30_000)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
  expect(again.map(({ held }) => held)).toEqual([false, false]);
  await (await b.write.lock({ wait: 30_000 })).unlock();
});

it("closing a client ends its readers' holds, and refuses waiting callers", async () => {
  const client = await join();
  const other = await join();
  const name = freshName();
  const [mine, theirs] = [client.readWriteLock(name), other.readWriteLock(name)];
  const readers = [await mine.read.lock(), await mine.read.lock()];
  const waits = mine.write.lock();
  await waiting(theirs, 1);
  const refused = expect(waits).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  await client.close({ grace: 0 });
  await refused;
  expect(readers.map(({ held }) => held)).toEqual([false, false]);
  await expect(mine.read.lock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  await (await theirs.write.lock({ wait: 30_000 })).unlock();
});
