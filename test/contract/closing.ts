import { describe, expect, it, type MockInstance, onTestFinished, vi } from "vitest";
import { ClientClosedError } from "../../src/index.ts";
import { linkOf } from "../support/link.ts";
import { type Listeners, listenersOf } from "../support/listeners.ts";
import { until } from "../support/until.ts";
import { failure, lossOf, warnings } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** How a client ends, and what it leaves to the others. */
export function closing(subject: Subject): void {
  describe("close", () => {
    it("rejects waiters and new calls, and leaves nothing in Redis", async () => {
      const { locks } = await subject.join();
      const { name, theirs } = subject.pair();
      const lock = subject.on(locks, name);
      const lease = await theirs.lock();
      const waiters = [lock.lock(), lock.tryLock(60_000), lock.withLock(() => {})].map(failure);
      await until(async () => (await subject.waiting(name)) > 0);
      await locks.close();
      for (const error of await Promise.all(waiters)) {
        expect(error).toBeInstanceOf(ClientClosedError);
        expect(error).toMatchObject({ code: "CLIENT_CLOSED", lockName: name });
      }
      for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.withLock(() => {})])
        expect(await failure(call())).toBeInstanceOf(ClientClosedError);
      await subject.untilWaiting(name, 0);
      expect(lease.held).toBe(true);
      await lease.unlock();
    });

    it("ends leases when the grace is over", async () => {
      const { locks } = await subject.join();
      const { name, theirs } = subject.pair();
      const lease = await subject.on(locks, name).lock();
      const { signal } = lease;
      const seen = warnings();
      const start = performance.now();
      let lostAfter = 0;
      signal.addEventListener("abort", () => {
        lostAfter = performance.now() - start;
      });
      await locks.close({ grace: 100 });
      expect(lostAfter).toBeGreaterThanOrEqual(90);
      expect([await lossOf(signal), lease.held]).toEqual(["closed", false]);
      await (await theirs.lock({ wait: 10_000 })).unlock();
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
      await until(() => seen.length > 0, { what: "a warning" });
      // that it was still held
      expect(seen.map(({ message }) => message)).toEqual([expect.stringContaining(name)]);
    });

    it("with no grace releases at once", async () => {
      const { locks } = await subject.join();
      const { name, theirs } = subject.pair();
      const lease = await subject.on(locks, name).lock();
      await locks.close({ grace: 0 });
      expect(lease.held).toBe(false);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("`await using` closes the client and its own connections, and nothing else", async () => {
      const redis = subject.connect();
      onTestFinished(() => subject.group(redis).forEach((one) => void one.disconnect()));
      await redis.ping();
      const group = subject.group(redis);
      let listeners: Listeners[] = [];
      let opened: MockInstance[] = [];
      const { name, theirs } = subject.pair();
      const first = await theirs.lock();
      {
        await using locks = subject.create(redis);
        listeners = group.map((one) => listenersOf(one));
        opened = group.map((one) => vi.spyOn(linkOf(one), "open"));
        subject.listen(locks);
        const waiter = subject.on(locks, name).lock();
        await subject.untilWaiting(name, 1);
        await first.unlock();
        await (await waiter).unlock();
      }
      const made = listeners.flatMap((one) => one.made);
      expect(made.length).toBe(subject.messages ? group.length : 0);
      await until(() => made.every(({ isClosed }) => isClosed), { what: "its connections to be closed" });
      expect(opened.flatMap(({ mock }) => mock.calls)).toEqual([]);
      expect([redis.status, linkOf(redis).state, await redis.ping()]).toEqual(["ready", "ready", "PONG"]);
    });

    it("can be called again, at the same time and later", async () => {
      const { locks } = await subject.join();
      await Promise.all([locks.close(), locks.close({ grace: 0 })]);
      await locks.close();
      await expect(locks.close({ grace: -1 })).rejects.toThrow(RangeError);
    });
  });
}
