import { describe, expect, it } from "vitest";
import { withoutBits } from "../../src/redis/hold-ids.ts";
import { clientOf } from "../../src/redis/party.ts";
import { awake } from "../support/awake.ts";
import { until } from "../support/until.ts";
import { failure } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What people can see of a lock, and how they take it away. */
const MODES: Readonly<Record<string, "read" | "write">> = { readLock: "read", writeLock: "write" };

export function inspection(subject: Subject): void {
  describe("inspection", () => {
    it("shows a free lock", async () => {
      const { mine } = subject.pair();
      expect(await mine.inspect()).toEqual({
        holder: null,
        token: null,
        remaining: null,
        kept: false,
        waiters: subject.queues ? [] : null,
        at: subject.queues ? expect.any(Number) : null,
        here: { waiting: 0, longest: null },
      });
      expect([await mine.isLocked(), await mine.forceUnlock()]).toEqual([false, false]);
    });

    it("shows the holder, its token and its time", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: 20_000 });
      const shown = await theirs.inspect();
      expect(shown).toMatchObject({
        token: subject.tokenOf(lease),
        waiters: subject.queues ? [] : null,
      });
      expect(shown.remaining).toBeGreaterThan(10_000);
      expect(shown.remaining).toBeLessThanOrEqual(20_001); // Redis rounds
      if (subject.isRedissons)
        expect((await subject.first.redis.hkeys(name)).map(withoutBits)).toEqual([shown.holder?.id]);
      else {
        const { id } = subject.first.locks;
        const [host, pid] = id.split(":");
        const { holder, token, remaining } = shown;
        expect(holder).toEqual({
          id: expect.stringMatching(/:\d+$/),
          label: null,
          host,
          pid: Number(pid),
          since: subject.queues || subject.isQuorum ? expect.any(Number) : null,
          heldFor: subject.queues ? expect.any(Number) : null,
          remaining,
          token,
          units: 1,
          mode: MODES[subject.kind] ?? null,
        });
        expect(holder && clientOf(holder)).toBe(id);
      }
      expect(await theirs.isLocked()).toBe(true);
      await lease.unlock();
      expect(await theirs.isLocked()).toBe(false);
    });

    it("shows the label of the call, or else that of its client, also to a caller that times out", async () => {
      const party = await subject.join({ label: "billing 100% {x}" });
      const { name, theirs } = subject.pair();
      const lease = await subject.of(party, name).lock({ label: "nightly/é", lease: 20_000 });
      const seen = subject.queues ? "nightly/é" : "billing 100% {x}";
      const label = subject.isRedissons ? null : seen;
      expect((await theirs.inspect()).holder).toMatchObject({ label });
      expect(await failure(theirs.lock({ wait: 30 }))).toMatchObject({ holder: { label } });
      await lease.unlock();
    });

    it("forceUnlock ends only the holder that was inspected", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: 20_000 });
      const { holder } = await theirs.inspect();
      const meant = { holder: holder?.id ?? "" };
      expect(await theirs.forceUnlock({ holder: `${meant.holder}0` })).toBe(false);
      if (holder?.token) expect(await theirs.forceUnlock({ ...meant, token: holder.token + 1 })).toBe(false);
      expect([lease.held, await theirs.isLocked()]).toEqual([true, true]);
      // Its process, where it is subscribed, receives the label of the caller that ends it.
      expect(await theirs.forceUnlock({ ...meant, label: "ops" })).toBe(true);
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(await theirs.forceUnlock(meant)).toBe(false);
    });

    it.runIf(subject.queues)("shows the waiters in order, and serves them in it", async () => {
      const { name, mine } = subject.pair();
      const parties = [await subject.join(), await subject.join(), await subject.join()];
      const lease = await mine.lock();
      const served: string[] = [];
      const calls: Promise<void>[] = [];
      for (const [waiting, party] of parties.entries()) {
        calls.push(subject.of(party, name).withLock(() => void served.push(party.locks.id)));
        await subject.untilWaiting(name, waiting + 1);
      }
      const ids = parties.map(({ locks }) => locks.id);
      const { waiters } = await mine.inspect();
      expect(waiters?.map(clientOf)).toEqual(ids);
      await lease.unlock();
      await Promise.all(calls);
      expect(served).toEqual(ids);
    });

    it("shows the callers of this client that wait", async () => {
      const { locks } = await subject.join();
      const { name, theirs } = subject.pair();
      const lock = subject.on(locks, name);
      const lease = await lock.lock();
      const waiters = [lock.lock(), lock.lock()];
      await until(async () => ((await lock.inspect()).here.longest ?? 0) > 20);
      expect((await lock.inspect()).here).toEqual({ waiting: 2, longest: expect.any(Number) });
      expect((await theirs.inspect()).here).toEqual({ waiting: 0, longest: null });
      await lease.unlock();
      for (const waiter of waiters) await (await waiter).unlock();
      expect((await lock.inspect()).here).toEqual({ waiting: 0, longest: null });
    });

    it("forceUnlock takes a label of 1 to 64 bytes, and nothing else", async () => {
      const { mine } = subject.pair();
      for (const label of ["", "x".repeat(65), "é".repeat(33), "\ud800"])
        expect(await failure(mine.forceUnlock({ label }))).toBeInstanceOf(RangeError);
      for (const options of [{ label: 5 }, { name: "x" }, "x"])
        expect(await failure(mine.forceUnlock(options as object))).toBeInstanceOf(TypeError);
      expect(await mine.forceUnlock({ label: "x".repeat(64) })).toBe(false);
    });

    it("forceUnlock hands the lock to the next waiter", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: 30_000 });
      const waiter = theirs.lock();
      await subject.untilWaiting(name, 1);
      const forced = awake();
      await mine.forceUnlock();
      const next = await waiter;
      expect(awake() - forced).toBeLessThan(1_000);
      expect(next.held).toBe(true);
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(next.held).toBe(true);
      await next.unlock();
    });
  });
}
