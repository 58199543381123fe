import { expect, it } from "vitest";
import type { LockClient, ReadWriteLock } from "../../src/index.ts";
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
