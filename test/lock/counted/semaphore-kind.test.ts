import { expect, it, onTestFinished } from "vitest";
import type { Lease } from "../../../src/index.ts";
import { Dice } from "../../chaos/dice.ts";
import { freshName } from "../../support/fixture.ts";
import { OwnServer } from "../../support/own-server.ts";
import { present } from "../../support/present.ts";
import { Semaphores } from "../../support/semaphores.ts";
import { until } from "../../support/until.ts";

// Permits by the waiting engine of the package: waiting, grants by message, renewals, ends.

const own = new OwnServer();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const join = (): Semaphores => {
  const semaphores = new Semaphores(own.url);
  onTestFinished(() => semaphores.close());
  return semaphores;
};
const take = async (semaphores: Semaphores, ...args: Parameters<Semaphores["acquire"]>): Promise<Lease> =>
  present((await semaphores.acquire(...args)) ?? undefined);

it("several callers of one process hold permits at once, and others wait for theirs, in order", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  const [one, two] = [await take(a, name, 3), await take(a, name, 3)];
  expect([one.held, two.held, one.token < two.token]).toEqual([true, true, true]);
  expect(await b.acquire(name, 3, 2, { wait: 0 })).toBeNull();
  const order: string[] = [];
  const large = take(b, name, 3, 3).then((lease) => {
    order.push("large");
    return lease;
  });
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 1);
  const small = take(a, name, 3, 1).then((lease) => {
    order.push("small");
    return lease;
  });
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 2);
  await one.unlock();
  expect(order).toEqual([]);
  const since = performance.now();
  await two.unlock();
  await (await large).unlock();
  await (await small).unlock();
  expect(order).toEqual(["large", "small"]);
  expect(performance.now() - since).toBeLessThan(1_400); // by messages, not by looking again
  expect(await own.admin.exists(`holdfast:semaphore:{${name}}`)).toBe(0);
});

it("leases of each caller end by themselves, are renewed, and are extended", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  const [short, renewed] = [await take(a, name, 2, 1, { lease: 200 }), await take(a, name, 2)];
  const waiter = take(b, name, 2);
  expect(await waiter.then(({ held }) => held)).toBe(true);
  expect([short.held, renewed.held]).toEqual([false, true]);
  await expect(short.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await renewed.extend(90_000);
  const { holders } = await a.scripts.inspect(name);
  expect(Math.max(...holders.map(({ remaining }) => remaining))).toBeGreaterThan(80_000);
});

it("a caller that leaves gives its place up, and a caller that closes all it has", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  const held = await take(a, name, 1);
  const leaving = new AbortController();
  const waiting = b.acquire(name, 1, 1, { signal: leaving.signal });
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 1);
  leaving.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 0);
  expect(await b.acquire(name, 1, 1, { wait: 50 })).toBeNull();
  await a.close();
  expect(held.held).toBe(false);
  expect((await take(b, name, 1)).held).toBe(true);
});

it("a caller whose code says another number is refused, with the reason", async () => {
  const a = join();
  const name = freshName();
  await take(a, name, 2);
  await expect(a.acquire(name, 5)).rejects.toMatchObject({ code: "PERMITS_DIFFER", stored: 2, given: 5 });
});

it("fewer permits refuse those that wait for more, and nobody else", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  const blocker = await take(a, name, 3, 3);
  const all = [3, 1, 2].map((units) => take(b, name, 3, units));
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 3);
  await a.scripts.setPermits(name, 2);
  const told = expect(all[0]).rejects.toMatchObject({ code: "PERMITS_DIFFER", stored: 2, units: 3 });
  await blocker.unlock();
  await told;
  const small = await present(all[1]);
  expect((await a.scripts.inspect(name)).waiters).toMatchObject([{ units: 2 }]);
  await small.unlock();
  await (await present(all[2])).unlock();
  await own.admin.del(`holdfast:semaphore:{${name}}`);
});

it("what is granted to a caller that has gone is given back at once", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  await (await take(b, freshName(), 1)).unlock();
  const blocker = await take(a, name, 1);
  const leaving = new AbortController();
  const waiting = b.acquire(name, 1, 1, { signal: leaving.signal });
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 1);
  const queue = `holdfast:semaphore:{${name}}:queue`;
  const [entry = "", ticket = ""] = await own.admin.zrange(queue, 0, "-1", "WITHSCORES");
  leaving.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await until(async () => (await own.admin.zcard(queue)) === 0);
  // As a copy of its command does, that the network kept.
  await own.admin.zadd(queue, ticket, entry);
  const since = performance.now();
  await blocker.unlock();
  await (await take(a, name, 1)).unlock();
  expect(performance.now() - since).toBeLessThan(1_000); // the grant's own end is 3 s away
});

it("units taken by force are lost at once", async () => {
  const [a, b] = [join(), join()];
  const name = freshName();
  const blocker = await take(b, name, 1);
  const waiting = take(a, name, 1); // so that this client listens
  await until(async () => (await a.scripts.inspect(name)).waiters.length === 1);
  await blocker.unlock();
  const held = await waiting;
  expect(await b.scripts.forceRelease(name, null, null)).toBe(1);
  await until(() => !held.held);
});

it(`three processes' worth of callers never use more than there is (TEST_SEED=${SEED})`, async () => {
  const dice = new Dice(SEED);
  const all = [join(), join(), join()];
  const name = freshName();
  const PERMITS = 4;
  let used = 0;
  let most = 0;
  const caller = async (semaphores: Semaphores): Promise<void> => {
    for (let i = 0; i < 8; i++) {
      const units = dice.int(1, 3);
      const lease = await semaphores.acquire(name, PERMITS, units, dice.chance(0.2) ? { wait: 0 } : {});
      if (!lease) continue;
      used += units;
      most = Math.max(most, used);
      expect(used).toBeLessThanOrEqual(PERMITS);
      await new Promise((done) => setTimeout(done, dice.int(0, 2)));
      used -= units;
      await lease.unlock();
    }
  };
  await Promise.all(all.flatMap((one) => Array.from({ length: 6 }, () => caller(one))));
  expect(most).toBe(PERMITS);
  expect(await own.admin.exists(`holdfast:semaphore:{${name}}`, `holdfast:semaphore:{${name}}:queue`)).toBe(
    0,
  );
});
