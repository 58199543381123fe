import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { needs } from "../support/script-server.ts";
import { ALL, type CountedHold, CountedStage } from "./stage.ts";

// One hold of a counted resource: every statement about it may be executed twice, late, and in any order.

const stage = new CountedStage();
const hold = (client: string, units = 1, lease = 30_000): CountedHold =>
  stage.permits(client, 5, units, { lease });

describe("late copies of commands", () => {
  it("an acquire that is executed twice reports its hold, and only extends it", async () => {
    const holder = hold("a", 2, 10_000);
    await holder.try();
    await holder.renew(60_000);
    const copy = await holder.try();
    expect(copy).toMatchObject({ is: "owner", already: true, units: 2 });
    expect(copy.is === "owner" && copy.ttl).toBeGreaterThan(50_000);
    expect(await stage.books()).toMatchObject({ used: 2, holds: 1 });
    const short = hold("b", 1, 20_000);
    await short.try();
    await short.try();
    expect((await short.renew(1)).ttl).toBeGreaterThan(10_000);
  });

  it("an acquire after its deadline does nothing", async () => {
    expect(await hold("a").queue((await stage.micros()) - 1)).toMatchObject({ is: "stale" });
    expect(await stage.redis.keys("*")).toEqual([]);
  });

  it("a shrink takes nothing back, and a release ends the rest once", async () => {
    const [holder, other] = [hold("a", 4), hold("b", 2)];
    await holder.try();
    expect(await holder.release(3)).toMatchObject({ is: "released" });
    expect(await holder.release(2)).toMatchObject({ is: "released" });
    await other.try();
    expect(await holder.release(3)).toMatchObject({ is: "released" });
    expect(await stage.books()).toMatchObject({ used: 4, holds: 2 });
    expect(await holder.release()).toMatchObject({ is: "released" });
    expect(await holder.release()).toEqual({
      is: "gone",
      clock: Number(await stage.redis.get(stage.keys.clock)),
      more: false,
    });
    expect(await holder.release(1)).toMatchObject({ is: "gone" });
    expect(await stage.books()).toMatchObject({ used: 2, holds: 1 });
  });

  it("a leave ends what it finds, any number of times", async () => {
    const [holder, waiter] = [hold("a", 5), hold("b", 5)];
    await holder.try();
    await waiter.queue();
    await holder.release();
    expect(await waiter.leave()).toMatchObject({ is: "released" });
    expect(await waiter.leave()).toMatchObject({ is: "gone" });
    expect(await stage.redis.exists(stage.keys.hash, stage.keys.queue)).toBe(0);
  });
});

describe("a hold whose end has passed", () => {
  it("is not revived, found or subtracted, even if no scan has removed it", async () => {
    const [crashed, lives] = [hold("a", 3), hold("b", 2)];
    await crashed.try();
    await lives.try();
    await stage.over(crashed);
    await stage.rewrite({ reap: 9_999_999_999_999 }); // so nothing scans
    expect(await crashed.renew()).toMatchObject({ is: "gone", ttl: 0 });
    expect(await crashed.renew(30_000, "confirm")).toMatchObject({ is: "gone", ttl: 0 });
    expect(await crashed.join()).toMatchObject({ is: "gone" });
    expect(await crashed.recheck()).toMatchObject({ is: "gone" });
    expect(await crashed.release()).toMatchObject({ is: "gone" });
    expect(await crashed.leave()).toMatchObject({ is: "gone" });
    expect(await stage.books()).toMatchObject({ used: 5, holds: 2 });
    await stage.rewrite({ reap: 1, scanned: 1 });
    expect(await crashed.release()).toMatchObject({ is: "gone" });
    expect(await stage.books()).toMatchObject({ used: 2, holds: 1 });
  });

  it("leaves other holds alone: each has its own end", async () => {
    const [short, long] = [stage.reader("a"), stage.reader("b")];
    await short.try();
    await long.try();
    await stage.over(short);
    const writer = stage.writer("c");
    expect(await writer.queue()).toMatchObject({ is: "held" });
    expect(await stage.holders()).toEqual([long.id]);
    await long.release();
    expect(await stage.grantees()).toEqual([writer.id]);
  });
});

describe("readers that share a hold", () => {
  it("may join while no caller is waiting, which extends the hold", async () => {
    const reader = stage.reader("a", { lease: 1_000 });
    await reader.try();
    expect(await reader.join(30_000)).toMatchObject({
      is: "owner",
      already: true,
      waits: false,
      ttl: 30_000,
    });
  });

  it("may not join while a caller is waiting, and extend nothing", async () => {
    const [reader, writer] = [stage.reader("a", { lease: 5_000 }), stage.writer("b")];
    await reader.try();
    await writer.queue();
    const answer = await reader.join(30_000);
    expect(answer).toMatchObject({ is: "owner", already: true, waits: true });
    expect(answer.is === "owner" && answer.ttl).toBeLessThanOrEqual(5_000);
  });

  it("join without making a hold or taking a place, also if the hold is queued", async () => {
    const [writer, reader] = [stage.writer("a"), stage.reader("b")];
    await writer.try();
    await reader.queue();
    const before = await stage.dump();
    expect(await reader.join()).toMatchObject({ is: "gone" });
    expect(await stage.reader("c").join()).toMatchObject({ is: "gone" });
    expect(await stage.dump()).toEqual(before);
  });
});

describe("tokens", () => {
  it("of the readers of one phase are equal, above those of earlier writers and below those of later ones", async () => {
    await stage.redis.set(stage.keys.clock, "8000000000000000"); // so they do not grow by the time
    const token = async (one: CountedHold): Promise<number> => {
      const answer = await one.try();
      return answer.is === "owner" ? answer.token : 0;
    };
    const tokens: number[] = [];
    for (let phase = 0; phase < 3; phase++) {
      const writer = stage.writer("a");
      tokens.push((await token(writer)) + 16); // its last pass
      await writer.release();
      const readers = [stage.reader("a"), stage.reader("b"), stage.reader("c")];
      const first = await token(readers[0] as CountedHold);
      tokens.push(first);
      for (const reader of readers.slice(1)) expect(await token(reader)).toBe(first);
      // The first of them leaves: it is still the same phase.
      await readers[0]?.release();
      expect(await token(stage.reader("d"))).toBe(first);
      await stage.run("forceRelease", "", "");
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  it("of readers granted after a writer belong to a new phase, even if the books stay all the time", async () => {
    const holds = [stage.reader("a"), stage.writer("b"), stage.reader("c"), stage.reader("d")];
    for (const hold of holds) await hold.queue();
    const [first, writer, ...behind] = holds;
    await first?.release();
    await writer?.release();
    const shares = await stage.shares();
    expect(shares.map(({ hold }) => hold)).toEqual([writer, ...behind].map((hold) => hold?.id));
    const [before = 0, ...phase] = shares.map(({ token }) => token);
    expect(new Set(phase).size).toBe(1);
    expect(phase[0]).toBeGreaterThan(before + 16);
  });

  it("of a writer that becomes a reader stay as they are, also for the readers beside it", async () => {
    const [writer, reader, next] = [stage.writer("a"), stage.reader("b"), stage.writer("c")];
    const answer = await writer.try();
    const present = answer.is === "owner" ? answer.token + 3 : 0;
    await reader.queue();
    await next.queue();
    expect(await writer.release(1, present)).toMatchObject({ is: "released" });
    expect(await stage.shares()).toMatchObject([{ hold: reader.id, token: present }]);
    expect(await stage.books()).toMatchObject({ used: 2, holds: 2 });
    expect(await writer.release(1, present)).toMatchObject({ is: "released" });
    expect(await stage.books()).toMatchObject({ used: 2, holds: 2 });
    await writer.release();
    await reader.release();
    const granted = (await stage.shares())[1];
    expect(granted?.hold).toBe(next.id);
    expect(granted?.token).toBeGreaterThan(present + 13);
  });
});

describe("a yield", () => {
  const yielded = async (from: CountedHold, to: CountedHold, stays = 0): Promise<unknown[]> =>
    (await from.yieldTo(to, stays)) as unknown[];

  it("serves the others first, and queues after them", async () => {
    const [writer, waiter, again] = [stage.writer("a"), stage.writer("b"), stage.writer("a")];
    await writer.try();
    await waiter.queue();
    expect((await yielded(writer, again))[0]).toBe(codes.HELD);
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect(await stage.queued()).toEqual([again.id]);
    // Its copy finds it there.
    expect((await yielded(writer, again))[0]).toBe(codes.HELD);
    expect(await stage.queued()).toEqual([again.id]);
    await waiter.release();
    expect(await stage.grantees()).toEqual([waiter.id, again.id]);
    expect((await yielded(writer, again))[0]).toBe(codes.MINE);
  });

  it("gets the lock back if no other caller is waiting", async () => {
    const [writer, again] = [stage.writer("a"), stage.writer("a")];
    await writer.try();
    expect((await yielded(writer, again))[0]).toBe(codes.OWNER);
    expect(await stage.holders()).toEqual([again.id]);
    expect(await stage.books()).toMatchObject({ used: ALL, holds: 1 });
  });

  it("returns a part, and its late copy queues nothing", async () => {
    const [pool, waiter, again] = [hold("a", 5), hold("b", 2), hold("a", 3)];
    await pool.try();
    await waiter.queue();
    expect((await yielded(pool, again, 2))[0]).toBe(codes.HELD);
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect(await stage.books()).toMatchObject({ used: 4, holds: 2 });
    await waiter.release();
    expect(await stage.grantees()).toEqual([waiter.id, again.id]);
    await again.release();
    expect(await yielded(pool, again, 2)).toEqual([codes.RELEASED, 0]);
    await pool.release();
    expect((await yielded(pool, again, 2))[0]).toBe(codes.GONE);
    expect(await stage.redis.exists(stage.keys.hash, stage.keys.queue)).toBe(0);
  });

  it("under another number ends the old hold anyway, and reports the stored number", async () => {
    const [old, next] = [hold("a", 2), stage.permits("a", 9, 2)];
    await old.try();
    await hold("b", 1).try();
    expect(await yielded(old, next)).toMatchObject([codes.DIFFERS, expect.anything(), 5, 0]);
    expect(await stage.books()).toMatchObject({ used: 1, holds: 1 });
    expect(await stage.queued()).toEqual([]);
  });

  it("without a token ends the old hold, and leaves no entry in the queue for it", async () => {
    const [old, next] = [hold("a", 2), hold("a", 2)];
    await old.try();
    await stage.redis.set(stage.keys.clock, "9007199254740991");
    expect((await yielded(old, next))[0]).toBe(codes.RELEASED);
    expect(await stage.redis.exists(stage.keys.hash, stage.keys.queue)).toBe(0);
  });
});

describe("a force-release", () => {
  it("ends all holds, or those of one mode, notifies their clients, and grants to waiters", async () => {
    const readers = [stage.reader("a"), stage.reader("b")];
    for (const reader of readers) await reader.try();
    const writer = stage.writer("c");
    await writer.queue();
    expect(await stage.run("forceRelease", "w", "")).toEqual([0, 0]);
    expect(await stage.run("forceRelease", "r", "nightly")).toEqual([2, 0]);
    const heard = await stage.listened();
    for (const { id } of readers) expect(heard).toContain(`revoked ${id} ${stage.keys.hash} nightly`);
    expect(await stage.grantees()).toEqual([writer.id]);
    for (const reader of readers) expect(await reader.release()).toMatchObject({ is: "gone" });
    expect(await stage.run("forceRelease", "", "")).toEqual([1, 0]);
    expect(await stage.listened()).toContain(`revoked ${writer.id} ${stage.keys.hash}`);
    expect(await stage.redis.exists(stage.keys.hash)).toBe(0);
  });
});

describe("inspect", () => {
  it("shows holders and waiters in order, and neither expired ones nor secrets", async () => {
    const [crashed, reader, writer] = [stage.reader("a"), stage.reader("b"), stage.writer("c")];
    await crashed.try();
    await reader.try();
    await writer.queue();
    await stage.over(crashed);
    const shown = await stage.inspect();
    expect(shown).toMatchObject({
      permits: ALL,
      isSet: false,
      used: 1,
      holders: [{ party: { mode: "read", units: 1 } }],
      waiters: [{ mode: "write", units: 1 }],
    });
    expect(shown.holders[0]?.party.remaining).toBeGreaterThan(29_000);
  });

  it("shows a resource that is not in use", async () => {
    expect(await stage.inspect()).toMatchObject({ permits: null, used: 0, holders: [], waiters: [] });
  });
});

needs("INFO persistence")(
  "a renewal extends one hold and reports the time left; a confirmation always writes",
  async () => {
    const holder = hold("a", 2, 1_000);
    await holder.try();
    expect((await holder.renew(20_000)).ttl).toBe(20_000);
    const left = await holder.renew(5_000);
    expect(left.is).toBe("renewed");
    expect(left.ttl).toBeGreaterThan(15_000);
    const written = async (): Promise<number> =>
      Number(/rdb_changes_since_last_save:(\d+)/.exec(await stage.redis.info("persistence"))?.[1]);
    const before = await written();
    await holder.renew(5_000);
    expect(await written()).toBe(before);
    expect((await holder.renew(5_000, "confirm")).ttl).toBeGreaterThan(15_000);
    expect(await written()).toBeGreaterThan(before);
  },
);

describe("10 000 holds of one name", () => {
  it.each([
    ["readers", "r"],
    ["permits", "p"],
  ] as const)(
    "%s: one more is refused, whether or not it would wait, until one has left",
    async (_, mode) => {
      // None ends meanwhile, however slow the machine is.
      const next = () => stage.hold("a", { mode, lease: 3_600_000 });
      const holds = Array.from({ length: 10_000 }, next);
      for (let i = 0; i < holds.length; i += 500) {
        const answers = await Promise.all(holds.slice(i, i + 500).map((one) => one.try()));
        expect(new Set(answers.map(({ is }) => is))).toEqual(new Set(["owner"]));
      }
      const [tries, waits] = [next(), next()];
      expect([await tries.try(), await waits.queue()]).toMatchObject([{ is: "crowded" }, { is: "crowded" }]);
      expect([(await stage.books()).holds, await stage.queued()]).toEqual([10_000, []]);
      // The present ones are no more than before.
      expect(await holds[0]?.try()).toMatchObject({ is: "owner", already: true });
      await holds[1]?.release();
      expect(await waits.queue()).toMatchObject({ is: "owner" });
      expect(await tries.try()).toMatchObject({ is: "crowded" });
    },
  );
});
