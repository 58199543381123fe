import { describe, expect, it } from "vitest";
import { type CountedHold, CountedStage } from "./stage.ts";

// How many permits there are: what callers say of it, and what is set.

const stage = new CountedStage();
describe("the number of permits", () => {
  const of = (permits: number, client: string, units = 1): CountedHold =>
    stage.permits(client, permits, units);

  it("is refused without an effect if it differs from the stored one, which the answer contains", async () => {
    await of(5, "a").try();
    const before = await stage.dump();
    expect(await of(10, "b").queue()).toMatchObject({ is: "differs", permits: 5 });
    expect(await of(0, "b", 6).queue()).toMatchObject({ is: "differs", permits: 5 });
    expect(await stage.dump()).toEqual(before);
    expect(await of(0, "b", 4).try()).toMatchObject({ is: "owner", units: 4 });
  });

  it("is unknown before a caller gives it", async () => {
    expect(await of(0, "a").try()).toMatchObject({ is: "differs", permits: 0 });
    expect(await stage.redis.keys("*")).toEqual([]);
  });

  it("is forgotten with the last caller that gave it, also by the one that finds the rest expired", async () => {
    for (const waits of [false, true]) {
      const [crashed, dead] = [of(5, "a", 4), of(5, "nobody", 4)];
      await crashed.try();
      if (waits) await dead.queue();
      expect(await of(20, "b").queue()).toMatchObject({ is: "differs", permits: 5 });
      await stage.over(crashed);
      expect(await of(20, "b", 9).queue()).toMatchObject({ is: "owner", units: 9 });
      expect(await stage.books()).toMatchObject({ used: 9, holds: 1, permits: 20, source: "c" });
      expect(await of(5, "c").queue()).toMatchObject({ is: "differs", permits: 20 });
      expect(await stage.queued()).toEqual([]);
      await stage.redis.flushall();
    }
    // Somebody who was told it lives, and waits.
    const [crashed, lives] = [of(5, "a", 4), of(5, "c", 4)];
    await crashed.try();
    await lives.queue();
    await stage.over(crashed);
    expect(await of(20, "b").queue()).toMatchObject({ is: "differs", permits: 5 });
    expect(await stage.grantees()).toEqual([lives.id]);
  });

  it("is not checked for what the caller has already", async () => {
    const holder = of(5, "a", 4);
    await holder.try();
    await stage.setPermits(2, await stage.micros());
    expect(await holder.try()).toMatchObject({ is: "owner", already: true, units: 4 });
    expect(await holder.recheck()).toMatchObject({ is: "owner", already: true });
  });

  it("invalidates places that asked under another number; their clients learn it at their re-check", async () => {
    const [holder, old, also] = [of(5, "a", 5), of(5, "b", 2), of(5, "c")];
    await holder.try();
    await old.queue();
    await also.queue();
    await stage.redis.del(stage.keys.hash); // as if its holders had crashed, and all had run out
    expect(await of(20, "d", 3).try()).toMatchObject({ is: "owner", units: 3 });
    expect(await stage.grantees()).toEqual([]);
    expect(await stage.queued()).toEqual([]);
    expect(await old.recheck()).toMatchObject({ is: "gone" });
    expect(await old.queue()).toMatchObject({ is: "differs", permits: 20 });
  });

  it("invalidates a place that re-checks itself, and admits the waiters after it", async () => {
    const [holder, old, next] = [of(5, "a", 4), of(5, "b", 3), stage.permits("c", 0, 1)];
    await holder.try();
    await old.queue();
    await next.queue();
    await stage.setPermits(2, 1);
    await holder.release(1);
    expect(await old.recheck()).toMatchObject({ is: "gone" });
    expect(await stage.grantees()).toEqual([next.id]);
  });

  describe("set by setPermits", () => {
    it("counts for all, whatever their code says, and does not expire", async () => {
      const holder = of(5, "a", 3);
      await holder.try();
      expect(await stage.setPermits(4, 100)).toEqual({ is: "released", old: 5, used: 3, more: false });
      expect(await of(77, "b").try()).toMatchObject({ is: "owner" });
      expect(await of(5, "b").try()).toMatchObject({ is: "held" });
      expect(await of(9, "b", 5).try()).toMatchObject({ is: "differs", permits: 4 });
      await stage.run("forceRelease", "", "");
      expect(await stage.redis.pttl(stage.keys.hash)).toBe(-1);
      expect(await of(0, "b", 4).try()).toMatchObject({ is: "owner", units: 4 });
      expect(await stage.redis.pttl(stage.keys.hash)).toBe(-1);
      expect(await stage.books()).toMatchObject({ source: "s", permits: 4 });
    });

    it("counts before the first use", async () => {
      expect(await stage.setPermits(2, 100)).toMatchObject({ is: "released", old: 0, used: 0 });
      expect(await stage.inspect()).toMatchObject({ permits: 2, isSet: true, used: 0 });
      expect(await stage.redis.pttl(stage.keys.hash)).toBe(-1);
      expect(await of(9, "b", 3).try()).toMatchObject({ is: "differs", permits: 2 });
    });

    it("admits waiters that fit now; if lowered below what is used, no holder loses its units and no waiter is admitted", async () => {
      const [holder, waiter, other] = [of(5, "a", 5), of(5, "b", 3), of(5, "c", 1)];
      await holder.try();
      await waiter.queue();
      await other.queue();
      expect(await stage.setPermits(8, 100)).toMatchObject({ is: "released", used: 8 });
      expect(await stage.grantees()).toEqual([waiter.id]);
      await stage.setPermits(2, 200);
      expect(await stage.inspect()).toMatchObject({ used: 8, permits: 2 });
      await holder.release();
      expect(await stage.grantees()).toEqual([waiter.id]);
      await waiter.release(1);
      expect(await stage.grantees()).toEqual([waiter.id, other.id]);
    });

    it("is not undone by a late copy of an earlier setting", async () => {
      await stage.setPermits(2, 100);
      await stage.setPermits(3, 200);
      expect(await stage.setPermits(2, 100)).toMatchObject({ is: "taken", old: 3 });
      expect(await stage.setPermits(3, 200)).toMatchObject({ is: "released", old: 3 });
      expect(await stage.books()).toMatchObject({ permits: 3 });
    });

    it("replaces one that was set before the server's clock went back; of two settings at one time the first counts", async () => {
      const ahead = (await stage.micros()) + 3_600_000_000;
      await stage.setPermits(2, ahead);
      const { stamp } = await stage.inspect();
      expect(await stage.setPermits(3, stamp)).toMatchObject({ is: "released", old: 2 });
      expect(await stage.setPermits(4, stamp)).toMatchObject({ is: "taken", old: 3 });
      expect(await stage.setPermits(2, ahead)).toMatchObject({ is: "taken", old: 3 });
      expect(await stage.books()).toMatchObject({ permits: 3 });
    });
  });
});
