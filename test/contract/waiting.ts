import { describe, expect, it } from "vitest";
import { type Lease, LockTimeoutError } from "../../src/index.ts";
import { awake } from "../support/awake.ts";
import { failure, Gate, holdAnswer, leased, watchTraffic } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** How long callers wait, in which order they are served, and what is left of one that goes. */
export function waiting(subject: Subject): void {
  describe("waiting", () => {
    it.each(["never waited", "waited before"])(
      "tryLock() without wait tries once and is not queued (%s)",
      async (how) => {
        const name = subject.name();
        const party = await subject.join();
        const [mine, theirs] = [subject.of(subject.second, name), subject.of(party, name)];
        await scriptsKnown(subject, name);
        const lease = await mine.lock();
        await subject.untilEverywhere(name);
        if (how === "waited before") {
          const enough = new AbortController();
          const waiting = failure(theirs.lock({ signal: enough.signal }));
          await subject.untilWaiting(name, 1); // it has a subscriber now
          enough.abort("enough");
          expect(await waiting).toBe("enough");
          expect(await theirs.tryLock()).toBe(null); // after a try that may have been under way
        }
        await subject.untilWaiting(name, 0);
        const traffic = watchTraffic(party);
        expect([await theirs.tryLock(), await theirs.tryLock(0), await theirs.tryLock({})]).toEqual([
          null,
          null,
          null,
        ]);
        // Of a lock that may be kept each try asks its keeper, from a place in the queue that it leaves.
        if (subject.lingers) await subject.untilWaiting(name, 0);
        else expect([traffic.commands, traffic.connections, await subject.waiting(name)]).toEqual([3, 0, 0]);
        await lease.unlock();
      },
    );

    it("tryLock() is not answered from what was true before the call", async () => {
      const name = subject.name();
      const party = await subject.join();
      const [mine, theirs] = [subject.of(subject.second, name), subject.of(party, name)];
      await (await theirs.lock()).unlock();
      await scriptsKnown(subject, name);
      const held = await mine.lock();
      await subject.untilEverywhere(name);
      const read = new Gate();
      const executed = subject.group(party.redis).map((redis) => holdAnswer(redis, read));
      const early = theirs.tryLock();
      await Promise.all(executed);
      await held.unlock();
      const late = theirs.tryLock();
      read.open();
      const [first, second] = await Promise.all([early, late]);
      // One that may be kept is its holder's to give up, for the first that asks; it has 50 ms for
      // its answer.
      if (subject.lingers) expect([first, second]).toContain(null);
      else expect(first).toBe(null);
      const lease = first ?? second ?? (subject.lingers ? await theirs.lock() : null);
      expect(lease?.held).toBe(true);
      await lease?.unlock();
    });

    // Every caller of the fair lock has a place of its own, and asks for it.
    it.skipIf(subject.isFair)("tryLock() sends nothing when its own client holds it", async () => {
      const { mine } = subject.pair();
      const lease = await mine.lock();
      const traffic = watchTraffic(subject.first);
      expect([await mine.tryLock(), traffic.commands]).toEqual([null, 0]);
      await lease.unlock();
    });

    it.each(["theirs", "mine"] as const)(
      "tryLock(wait) answers null when the wait is over (%s)",
      async (who) => {
        const pair = subject.pair();
        const lease = await pair.mine.lock();
        const [asked, asleep] = [performance.now(), awake()];
        expect(await pair[who].tryLock(150)).toBe(null);
        expect(performance.now() - asked).toBeGreaterThanOrEqual(140);
        expect(awake() - asleep).toBeLessThan(1_000);
        if (who === "theirs" || subject.queues) await subject.untilWaiting(pair.name, 0);
        expect(lease.held).toBe(true);
        await lease.unlock();
      },
    );

    it("lock and withLock reject with LockTimeoutError when the wait is over", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock();
      let ran = false;
      const body = () => {
        ran = true;
      };
      for (const call of [() => theirs.lock({ wait: 60 }), () => theirs.withLock({ wait: 60 }, body)]) {
        const asked = performance.now();
        const error = await failure(call());
        expect(error).toBeInstanceOf(LockTimeoutError);
        expect(error).toMatchObject({ code: "LOCK_TIMEOUT", lockName: name, wait: 60 });
        expect(performance.now() - asked).toBeGreaterThanOrEqual(50);
      }
      expect(ran).toBe(false);
      await subject.untilWaiting(name, 0);
      await lease.unlock();
    });

    it("a waiter that gives up costs the others nothing", async () => {
      const { name, mine, theirs } = subject.pair();
      const third = subject.of(await subject.join(), name);
      const lease = await mine.lock();
      const leaving = new AbortController();
      const impatient = failure(theirs.lock({ signal: leaving.signal }));
      await subject.untilWaiting(name, 1);
      const patient = third.lock();
      await subject.untilWaiting(name, 2);
      leaving.abort("enough");
      expect(await impatient).toBe("enough");
      await lease.unlock();
      const unlocked = awake();
      const next = await patient;
      expect(awake() - unlocked).toBeLessThan(1_000);
      await next.unlock();
    });

    it("takes a lock that became free without an unlock by this client", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await leased(() => mine.lock({ lease: 200 })); // left to run out
      const asked = awake();
      const next: Lease = await theirs.lock({ wait: 10_000 });
      expect(awake() - asked).toBeLessThan(2_000);
      expect([next.held, lease.held, next.name]).toEqual([true, false, name]);
      await next.unlock();
      await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    });

    it("refuses a time unit and other bad arguments before anything is sent", async () => {
      const { mine } = subject.pair();
      const traffic = watchTraffic(subject.first);
      const tryLock = mine.tryLock.bind(mine) as (...args: unknown[]) => Promise<unknown>;
      await expect(tryLock(10, 60, "SECONDS")).rejects.toThrow(/milliseconds/);
      await expect(tryLock(-1)).rejects.toThrow(RangeError);
      await expect(tryLock(0, 9)).rejects.toThrow(/lease must be .* from 10 to .*, received 9/);
      await expect(tryLock({ leaseTime: 1_000 })).rejects.toThrow(TypeError);
      await expect(tryLock({ signal: {} })).rejects.toThrow(TypeError);
      expect(traffic.commands).toBe(0);
    });
  });
}

/**
 * Each server of this lock knows the scripts of an acquisition afterwards, also that of a client's
 * first one: a script that is not known is sent twice.
 */
async function scriptsKnown(subject: Subject, name: string): Promise<void> {
  const visitor = subject.of(await subject.join(), name);
  for (let visit = 0; visit < 2; visit++) await (await visitor.lock()).unlock();
}
