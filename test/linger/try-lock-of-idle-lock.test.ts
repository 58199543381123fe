import { describe, expect, it, vi } from "vitest";
import type { FakeKeeper, Manners } from "../support/fake-keeper.ts";
import { runs, Stage, timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { AT_ONCE, keptElsewhere, scriptsSent } from "./kept-elsewhere.ts";

// tryLock() without wait, of a lock that another client may keep with nobody inside.

vi.mock("../../src/defaults.ts", async (all) => (await import("../support/patience.ts")).patient(all));
const stage = new Stage();

const kept = (manners: Manners): Promise<FakeKeeper> => keptElsewhere(stage, manners);
const questions = (keeper: FakeKeeper): number =>
  keeper.recalls.filter((text) => / [^ -][^ ]*\.[0-9a-f]{16} /.test(text)).length;
const wants = (keeper: FakeKeeper): number => keeper.recalls.filter((text) => text.includes(" - ")).length;
const sent = (...script: Parameters<typeof runs>): number => scriptsSent(stage, ...script);

describe.each(["lock", "fairLock"] as const)("%s", (kind) => {
  const mine = () => stage.near.locks[kind](stage.lock.name);

  it("never says busy of an idle lock, also before the client has subscribed", async () => {
    const keeper = await kept("idle");
    for (let round = 0; round < 5; round++) {
      const lease = await mine().tryLock();
      expect(lease?.held).toBe(true);
      expect(await stage.lock.holder()).toMatch(new RegExp(`:${stage.near.locks.id}:`));
      await lease?.unlock();
      await keeper.keep(stage.lock.name);
    }
    expect([questions(keeper), wants(keeper)]).toEqual([5, 0]);
  });

  it("says busy at once when a caller is inside, does not set `wanted`, and leaves no place behind", async () => {
    const keeper = await kept("busy");
    await stage.warm(stage.near);
    const [lease, waited] = await timedAwake(mine().tryLock());
    expect([lease, waited < AT_ONCE]).toEqual([null, true]);
    await stage.lock.queued(0);
    expect([questions(keeper), wants(keeper)]).toEqual([1, 0]);
    expect(await stage.lock.holder()).toBe(keeper.hold);
  });

  it("emits no event of waiting, and gives up as a call that would not wait", async () => {
    await kept("busy");
    const told: unknown[] = [];
    stage.near.locks.on("wait", () => told.push("wait"));
    stage.near.locks.on("giveup", ({ why }) => told.push(why));
    expect(await mine().tryLock()).toBe(null);
    expect(told).toEqual(["busy"]);
  });
});

describe("tryLock()", () => {
  const mine = () => stage.near.locks.lock(stage.lock.name);

  it("that finds another holder when it recalls is answered so at once", async () => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    // The subscription is there; between the try and the question the lock goes to a caller that is inside.
    const holding = stage.proxy.holdCommand(runs("acquire", "queue"));
    const trying = timedAwake(mine().tryLock());
    const held = await holding;
    await keeper.keep(stage.lock.name, 0);
    await held.deliver();
    const [lease, waited] = await trying;
    expect([lease, waited < AT_ONCE]).toEqual([null, true]);
    await stage.lock.queued(0);
    expect(keeper.recalls).toEqual([]);
  });

  it("sends one recall for callers that come together, and all get their answer", async () => {
    const keeper = await kept("busy");
    await stage.warm(stage.near);
    const leases = await Promise.all(Array.from({ length: 5 }, () => mine().tryLock()));
    expect(leases).toEqual([null, null, null, null, null]);
    expect(questions(keeper)).toBe(1);
    await stage.lock.queued(0);
  });

  it("beside a waiting caller lets the holder know of the waiter", async () => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    const trying = mine().tryLock();
    await until(() => questions(keeper) === 1, { what: "the question" });
    const waiting = mine().lock();
    await until(() => wants(keeper) >= 1, { what: "the recall of the caller that waits" });
    expect(await trying).toBe(null);
    await stage.lock.queued(1);
    await keeper.keep(stage.lock.name, 2, 1);
    await (await waiting).unlock();
  });

  it("that shares its command with a waiting caller has its answer in a moment, too", async () => {
    const keeper = await kept("silent");
    const [waiting, trying] = [mine().lock(), mine().tryLock()];
    expect(await trying).toBe(null);
    await until(() => wants(keeper) >= 1, { what: "the recall" });
    await keeper.keep(stage.lock.name, 2, 1);
    await (await waiting).unlock();
  });

  it("whose lock comes while it leaves hands it on", async () => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    stage.proxy.record();
    const trying = mine().tryLock();
    const holding = stage.proxy.holdCommand(runs("leave"));
    expect(await trying).toBe(null);
    const held = await holding;
    await keeper.giveUp(stage.lock.name); // granted to the place that is about to be left
    await until(async () => (await stage.lock.holder()).includes(stage.near.locks.id), { what: "the grant" });
    await held.deliver();
    await stage.lock.gone();
    expect(sent("leave")).toBeGreaterThanOrEqual(1);
  });

  it("ends with its signal", async () => {
    await kept("silent");
    await stage.warm(stage.near);
    const controller = new AbortController();
    const trying = mine().tryLock({ signal: controller.signal });
    await stage.lock.queued(1);
    controller.abort(new Error("enough"));
    await expect(trying).rejects.toThrow("enough");
    await stage.lock.queued(0);
  });

  it("of a client that may not subscribe says busy", async () => {
    await kept("idle");
    await stage.far.redis.call("ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-subscribe");
    const near = await stage.join({ redis: { username: "mute", password: "secret" } });
    near.locks.on("error", () => {}); // NO_MESSAGES
    expect(await near.locks.lock(stage.lock.name).tryLock()).toBe(null);
    expect(await near.locks.lock(stage.lock.name).isLocked()).toBe(true);
    await stage.lock.queued(0);
  });

  it("gives the lock to the caller with all that it asked for", async () => {
    await kept("idle");
    const lease = await mine().tryLock(0, 20_000);
    expect(lease?.remaining).toBeGreaterThan(19_000);
    expect(await stage.lock.left()).toBeGreaterThan(19_000);
    await lease?.unlock();
  });
});

describe("a multi-lock without wait", () => {
  it("makes idle holders release all of its members, and is busy if one of them is", async () => {
    const keeper = await kept("idle");
    const names = [stage.lock.name, `${stage.lock.name}:b`, `${stage.lock.name}:c`];
    for (const name of names) await keeper.keep(name);
    const lease = await stage.near.locks.multiLock(names).tryLock();
    expect(lease?.held).toBe(true);
    await lease?.unlock();
    for (const name of names) await keeper.keep(name);
    keeper.manners = "busy";
    const [none, waited] = await timed(stage.near.locks.multiLock(names).tryLock());
    expect([none, waited < 2_000]).toEqual([null, true]);
    for (const name of names) await stage.far.redis.del(`holdfast:{${name}}`);
    await until(async () => (await stage.far.redis.keys("*:queue")).length === 0, { what: "no places" });
  });
});
