import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { present } from "../support/present.ts";
import { until } from "../support/until.ts";
import { ALL, CountedStage } from "./stage.ts";

// Which hold gets what, and in which order: the scripts of read-write locks and semaphores by themselves.

const stage = new CountedStage();

describe("readers and writers", () => {
  it("one script grants all readers at the head, up to the first writer; each message contains everything", async () => {
    const holder = stage.writer("a");
    await holder.try();
    const run = [stage.reader("b"), stage.reader("c"), stage.reader("d", { window: 500 })];
    const [next, behind] = [stage.writer("a"), stage.reader("b")];
    for (const hold of [...run, next, behind]) await hold.queue();
    await holder.release();
    const shares = await stage.shares();
    expect(shares.map(({ hold }) => hold)).toEqual(run.map(({ id }) => id));
    expect(new Set(shares.map(({ token }) => token)).size).toBe(1);
    expect(shares.map(({ ttl }) => ttl)).toEqual([3_000, 3_000, 500]);
    for (const share of shares) expect(share).toMatchObject({ key: stage.keys.hash, waits: true, units: 1 });
    expect(await stage.queued()).toEqual([next.id, behind.id]);
    expect(await stage.books()).toMatchObject({ used: 3, holds: 3, permits: ALL });
  });

  it("a leaving writer's place admits the waiters after it that fit", async () => {
    const [reader, writer, behind] = [stage.reader("a"), stage.writer("b"), stage.reader("c")];
    await reader.try();
    await writer.queue();
    await behind.queue();
    expect(await writer.leave()).toMatchObject({ is: "gone" });
    const [share] = await stage.shares();
    expect(share).toMatchObject({ hold: behind.id, waits: false });
  });

  it("a re-check that finds its own turn goes on to the waiters after it", async () => {
    const [crashed, first, second] = [stage.writer("a"), stage.reader("b"), stage.reader("c")];
    await crashed.try();
    await first.queue();
    await second.queue();
    await stage.over(crashed);
    expect(await first.recheck()).toMatchObject({ is: "owner", ttl: 30_000, waits: false });
    expect(await stage.grantees()).toEqual([second.id]);
  });

  it("an acquire that grants the lock to others queues after them", async () => {
    const [crashed, waiter, comer] = [stage.writer("a"), stage.writer("b"), stage.reader("c")];
    await crashed.try();
    await waiter.queue();
    await stage.over(crashed);
    expect(await comer.queue()).toMatchObject({ is: "held", position: 0 });
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect((await stage.shares())[0]).toMatchObject({ waits: true });
  });
});

describe("permits", () => {
  it("are granted up to the number asked for, as many as fit, but no fewer than needed", async () => {
    const [holder, pool, next] = [
      stage.permits("a", 5, 2),
      stage.permits("b", 5, 1, { upTo: 9 }),
      stage.permits("c", 5, 2, { upTo: 4 }),
    ];
    await holder.try();
    expect(await pool.try()).toMatchObject({ is: "owner", units: 3 });
    expect(await next.queue()).toMatchObject({ is: "held" });
    await pool.release(2);
    expect(await stage.grantees()).toEqual([]);
    await pool.release(1);
    expect((await stage.shares())[0]).toMatchObject({ hold: next.id, units: 2 });
  });

  it("have a token per hold, which grows", async () => {
    const holds = [stage.permits("a", 9), stage.permits("b", 9), stage.permits("c", 9)];
    const tokens: number[] = [];
    for (const hold of holds) {
      const answer = await hold.try();
      if (answer.is === "owner") tokens.push(answer.token);
    }
    expect(tokens).toHaveLength(3);
    expect([...tokens].sort((a, b) => a - b)).toEqual(tokens);
    expect(new Set(tokens).size).toBe(3);
  });

  it(`more than ${codes.RUN} grants need several scripts, and each says whether more are due`, async () => {
    const permits = 2 * codes.RUN + 10;
    const holder = stage.permits("a", permits, permits);
    await holder.try();
    const waiters = Array.from({ length: permits }, () => stage.permits("b", permits));
    await Promise.all(waiters.map((waiter) => waiter.queue()));
    expect(await holder.release()).toMatchObject({ is: "released", more: true });
    expect(await stage.grantees()).toHaveLength(codes.RUN);
    // Nobody who comes meanwhile passes those that wait.
    expect(await stage.permits("c", permits).try()).toMatchObject({ is: "held", position: null, more: true });
    expect(await stage.run("advance")).toBe(0);
    expect(await stage.grantees()).toEqual(waiters.map(({ id }) => id));
    expect(await stage.books()).toMatchObject({ used: permits, holds: permits });
  });

  it.each(["gone", "differs"] as const)("an answer of no, %s, says so too", async (answer) => {
    const permits = codes.RUN + 10;
    const [crashed, other] = [stage.permits("a", permits, permits), stage.permits("c", permits + 1)];
    await crashed.try();
    const waiters = Array.from({ length: permits }, () => stage.permits("b", permits));
    await Promise.all(waiters.map((waiter) => waiter.queue()));
    await stage.over(crashed);
    expect(await (answer === "gone" ? other.recheck() : other.try())).toMatchObject({
      is: answer,
      more: true,
    });
    expect(await stage.run("advance")).toBe(0);
    expect(await stage.grantees()).toHaveLength(permits);
  });
});

describe("entries", () => {
  it("that are dead or unreadable are removed from the head, also if they would not fit", async () => {
    const holder = stage.reader("a");
    await holder.try();
    await stage.writer("nobody").queue();
    await stage.redis.zadd(stage.keys.queue, 5, "no entry", 6, "1w 3000 16 1000000 1000000 1000000 short");
    const late = await stage.micros();
    await stage.redis.zadd(stage.keys.queue, late - codes.ENTRY_TTL - 1_000_000, stage.writer("b").entry);
    expect(await stage.reader("c").try()).toMatchObject({ is: "owner", waits: false });
    expect(await stage.queued()).toEqual([]);
  });

  it("of a crowd of dead clients are removed by one script, and the live one after them is served", async () => {
    const holder = stage.reader("a");
    await holder.try();
    for (let i = 0; i < 700; i++)
      await stage.redis.zadd(stage.keys.queue, await stage.micros(), stage.writer(`no${i % 99}`).entry);
    const live = stage.reader("b");
    await stage.redis.zadd(stage.keys.queue, await stage.micros(), live.entry);
    await stage.run("advance");
    expect(await stage.grantees()).toEqual([live.id]);
    expect(await stage.queued()).toEqual([]);
  });

  it("of a client whose receiver count proves nothing are granted", async () => {
    const holder = stage.writer("a");
    await holder.try();
    const waiter = stage.reader("nobody", { counted: 0 });
    await waiter.queue();
    await holder.release();
    expect(await stage.holders()).toEqual([waiter.id]);
  });

  it("are all kept by a re-check of their client, and only for its time", async () => {
    const holder = stage.writer("a");
    await holder.try();
    const [first, second, other] = [stage.reader("b"), stage.reader("b"), stage.reader("c")];
    const old = (await stage.micros()) - codes.ENTRY_TTL - 1_000;
    for (const [i, { entry }] of [first, second, other].entries())
      await stage.redis.zadd(stage.keys.queue, old + i, entry);
    expect(await first.recheck("1", 60_000)).toMatchObject({ is: "held", position: 0 });
    expect(await stage.redis.zrange(stage.keys.clients, 0, "-1")).toEqual([`1${stage.channel("b")}`]);
    expect(await stage.redis.pttl(stage.keys.hash)).toBeGreaterThanOrEqual(
      await stage.redis.pttl(stage.keys.queue),
    );
    await holder.release();
    expect(await stage.grantees()).toEqual([first.id, second.id]);
    expect(await stage.queued()).toEqual([]);
  });

  it("keep their place when the command that queued them comes again; newcomers queue after them, whatever the clock does", async () => {
    const holder = stage.writer("a");
    await holder.try();
    const [before, waiter, comer] = [stage.reader("b"), stage.reader("c"), stage.reader("d")];
    // before the clock went back
    await stage.redis.zadd(stage.keys.queue, (await stage.micros()) + 60_000_000, before.entry);
    expect(await waiter.queue()).toMatchObject({ position: 1 });
    expect(await comer.queue()).toMatchObject({ position: 2 });
    expect(await waiter.queue()).toMatchObject({ position: 1 });
    expect(await stage.queued()).toEqual([before.id, waiter.id, comer.id]);
  });
});

describe("the units of a crashed holder come back without a sweep", () => {
  it("to the first waiter, at its next re-check, whose time the answer gives", async () => {
    const [crashed, lives, waiter] = [
      stage.permits("a", 3, 2, { lease: 5_000 }),
      stage.permits("b", 3, 1),
      stage.permits("c", 3, 2),
    ];
    await crashed.try();
    await lives.try();
    const answer = await waiter.queue();
    expect(answer).toMatchObject({ is: "held" });
    expect(present(answer.is === "held" ? answer.ttl : undefined)).toBeLessThanOrEqual(5_000);
    await stage.over(crashed);
    expect(await waiter.recheck()).toMatchObject({ is: "owner", units: 2 });
    expect(await stage.books()).toMatchObject({ used: 3, holds: 2 });
  });

  it("to the next caller, and to waiters with the next command", async () => {
    for (const next of ["release", "leave", "try", "mine", "gone"] as const) {
      await stage.redis.flushall();
      const [crashed, lives, waiter, other] = [
        stage.permits("a", 3, 2),
        stage.permits("b", 3, 1),
        stage.permits("c", 3, 2),
        stage.permits("d", 3, 1),
      ];
      await crashed.try();
      await lives.try();
      await waiter.queue();
      await stage.over(crashed);
      if (next === "release") await other.release();
      if (next === "leave") await other.leave();
      if (next === "try") await other.try();
      if (next === "mine") expect(await lives.try()).toMatchObject({ already: true, waits: false });
      if (next === "gone") expect(await other.recheck()).toMatchObject({ is: "gone" });
      await until(async () => (await stage.grantees()).includes(waiter.id), { what: next });
    }
  });
});
