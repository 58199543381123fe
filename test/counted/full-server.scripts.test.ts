import { beforeEach, describe, expect } from "vitest";
import { needs } from "../support/script-server.ts";
import { CountedStage } from "./stage.ts";

// A Redis that is full, and refuses what needs memory: whatever ends or is kept goes on, what is
// new is refused with nothing done.

const it = needs("maxmemory");
const stage = new CountedStage(["--maxmemory-policy", "noeviction"]);
const fill = (): Promise<unknown> => stage.redis.config("SET", "maxmemory", "1");

beforeEach(() => stage.redis.config("SET", "maxmemory", "0"));

describe.each([
  ["as callers know it", false],
  ["as it was set", true],
])("the number of permits %s", (_, isSet) => {
  const hold = (client: string, units: number) => stage.permits(client, 5, units);
  const begin = async () => {
    const [holder, other, waiter] = [hold("a", 2), hold("b", 2), hold("c", 3)];
    await holder.try();
    await other.try();
    await waiter.queue();
    if (isSet) await stage.setPermits(5, 100);
    await fill();
    return { holder, other, waiter };
  };

  it("a release grants what it frees to waiters", async () => {
    const { holder, waiter } = await begin();
    expect(await holder.release()).toMatchObject({ is: "released" });
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect(await stage.books()).toMatchObject({ used: 5, holds: 2 });
  });

  it("a shrinking hold does so too", async () => {
    const { holder, other, waiter } = await begin();
    await holder.release(1);
    await other.release(1);
    expect(await stage.grantees()).toEqual([waiter.id]);
  });

  it("renewals, confirmations, copies of acquires and joins extend a hold", async () => {
    const { holder, waiter } = await begin();
    expect(await holder.renew(60_000)).toMatchObject({ is: "renewed", ttl: 60_000 });
    expect(await holder.renew(70_000, "confirm")).toMatchObject({ is: "renewed", ttl: 70_000 });
    const copy = stage.permits("a", 5, 2, { lease: 90_000 });
    Object.assign(copy, { id: holder.id });
    expect(await copy.try()).toMatchObject({ is: "owner", already: true, ttl: 90_000 });
    await waiter.leave();
    expect(await holder.join(120_000)).toMatchObject({ is: "owner", ttl: 120_000 });
  });

  it("a leave removes a place, and admits the waiters after it", async () => {
    const { waiter } = await begin();
    await stage.redis.config("SET", "maxmemory", "0");
    const next = hold("d", 1);
    await next.queue();
    await fill();
    await waiter.leave();
    expect(await stage.grantees()).toEqual([next.id]);
  });

  it("a re-check keeps its place, and takes the units that are its own", async () => {
    const { holder, waiter } = await begin();
    expect(await waiter.recheck()).toMatchObject({ is: "held", position: 0 });
    await stage.redis.hdel(stage.keys.hash, holder.id);
    await stage.redis.config("SET", "maxmemory", "0");
    await stage.rewrite({ reap: 1, scanned: 1 });
    await fill();
    expect(await waiter.recheck()).toMatchObject({ is: "owner", units: 3 });
  });

  it("a new caller is refused, with nothing done", async () => {
    await begin();
    const before = await stage.dump();
    await expect(hold("d", 1).queue()).rejects.toThrow("OOM");
    expect(await stage.dump()).toEqual(before);
  });
});

it("a first hold is refused, with nothing done", async () => {
  await fill();
  await expect(stage.reader("a").try()).rejects.toThrow("OOM");
  await expect(stage.reader("a").queue()).rejects.toThrow("OOM");
  await expect(stage.setPermits(5, 1)).rejects.toThrow("OOM");
  expect(await stage.redis.keys("*")).toEqual([]);
});

it("a reader in a phase is refused, with nothing done", async () => {
  await stage.reader("a").try();
  const before = await stage.dump();
  await fill();
  await expect(stage.reader("b").try()).rejects.toThrow("OOM");
  expect(await stage.dump()).toEqual(before);
});

it("a copy of the command that queued it finds its place", async () => {
  const [holder, waiter] = [stage.writer("a"), stage.writer("b")];
  await holder.try();
  await waiter.queue();
  await fill();
  expect(await waiter.queue()).toMatchObject({ is: "held", position: 0 });
});

it("a yield queues after the other waiters", async () => {
  const [holder, waiter, again] = [stage.writer("a"), stage.writer("b"), stage.writer("a")];
  await holder.try();
  await waiter.queue();
  await fill();
  await holder.yieldTo(again);
  expect(await stage.grantees()).toEqual([waiter.id]);
  expect(await stage.queued()).toEqual([again.id]);
});
