import { describe, expect, it, onTestFinished } from "vitest";
import { Actor } from "../support/actor.ts";
import { awake } from "../support/awake.ts";
import { freshName } from "../support/fixture.ts";
import { failure } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What a lock is for. The default suite runs these on a real Redis, too. */
export function happyPath(subject: Subject): void {
  describe("the happy path", () => {
    it("gives the lock to one client at a time", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await mine.lock();
      expect([lease.held, lease.name, await theirs.tryLock()]).toEqual([true, mine.name, null]);
      await lease.unlock();
      expect(lease.held).toBe(false);
      const next = await theirs.lock();
      expect(await mine.tryLock()).toBe(null);
      await next.unlock();
    });

    it("hands the lock to a client that waits, when it is unlocked", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock();
      const waiter = theirs.lock();
      await subject.untilWaiting(name, 1);
      const unlocked = awake();
      await lease.unlock();
      const next = await waiter;
      expect(awake() - unlocked).toBeLessThan(1_000); // by message: the next look would come later
      expect([lease.held, next.held, await mine.tryLock()]).toEqual([false, true, null]);
      await next.unlock();
    });

    it("tells the holder of a lost lock, and gives the lock to others", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock();
      const { signal } = lease;
      await subject.erase(name);
      const loss = await failure(lease.extend(30_000));
      expect(loss).toMatchObject({ code: "LOCK_LOST", reason: "gone", lockName: name });
      expect([lease.held, signal.reason]).toEqual([false, loss]);
      await lease.unlock(); // extend() has thrown the loss
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("excludes processes: no turns overlap, no update is lost, every process gets its turn", async () => {
      const name = subject.name();
      const actors = await Promise.all(
        [1, 2, 3].map(() =>
          Actor.start({ address: subject.topology.address, client: { ...subject.client } }),
        ),
      );
      onTestFinished(() => Promise.all(actors.map((actor) => actor.end())).then(() => {}));
      const counterKey = freshName("counter");
      const orders = { tasks: 3, rounds: 15, holdMs: 0, counterKey };
      const reports = await Promise.all(
        actors.map((actor) => actor.call("hammer", subject.kind, name, orders)),
      );
      const sum = (count: "acquisitions" | "overlaps" | "lost") =>
        reports.reduce((total, report) => total + report[count], 0);
      const counter = Number(await subject.first.redis.getdel(counterKey));
      expect([sum("overlaps"), sum("lost"), sum("acquisitions"), counter]).toEqual([0, 0, 135, 135]);
    });
  });
}
