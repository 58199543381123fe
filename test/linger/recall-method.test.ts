import { describe, expect, it, vi } from "vitest";
import type { Lock } from "../../src/index.ts";
import { HandoffKind } from "../../src/wires/handoff.ts";
import { FakeKeeper, type Manners } from "../support/fake-keeper.ts";
import { lockOf } from "../support/permit.ts";
import { runs, Stage, timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { AT_ONCE, keptElsewhere, SILENCE, scriptsSent } from "./kept-elsewhere.ts";

// Questions to a client that may keep a lock with nobody inside, by callers that do not want to wait for it.

vi.mock("../../src/defaults.ts", async (all) => (await import("../support/patience.ts")).patient(all));
const stage = new Stage();

const kept = (manners: Manners): Promise<FakeKeeper> => keptElsewhere(stage, manners);
const mine = (kind: "lock" | "fairLock" = "lock") => stage.near.locks[kind](stage.lock.name);
const sent = (...script: Parameters<typeof runs>): number => scriptsSent(stage, ...script);

describe.each(["lock", "fairLock"] as const)("%s", (kind) => {
  it.each([
    ["idle", false],
    ["busy", true],
    ["silent", true],
  ] as const)("isLocked() of one whose holder is %s: %s", async (manners, isLocked) => {
    const keeper = await kept(manners);
    await stage.warm(stage.near);
    stage.proxy.record();
    const [[answer, awake], ms] = await timed(timedAwake(mine(kind).isLocked()));
    expect(answer).toBe(isLocked);
    if (manners === "silent") expect(ms).toBeGreaterThanOrEqual(SILENCE - 5);
    expect(awake).toBeLessThan(manners === "silent" ? SILENCE + AT_ONCE : AT_ONCE);
    expect(keeper.recalls).toEqual([expect.stringMatching(/ \?.* holdfast:\{/)]);
    // Nothing but questions: nobody is asked to give anything up.
    expect([sent("inspect"), sent("acquire"), sent("leave")]).toEqual([2, 0, 0]);
    expect(await stage.lock.holder()).toBe(keeper.hold);
  });

  it("inspect() says that it may be cached, and sends no recall", async () => {
    const keeper = await kept("idle");
    expect(await mine(kind).inspect()).toMatchObject({ kept: true, holder: { id: `${keeper.id}:1` } });
    await keeper.keep(stage.lock.name, 1);
    expect(await mine(kind).inspect()).toMatchObject({ kept: false, holder: { id: `${keeper.id}:1` } });
    expect(await mine(kind).isLocked()).toBe(true);
    expect(keeper.recalls).toEqual([]);
  });

  it("recall() makes an idle holder release it, and acquires nothing", async () => {
    const keeper = await kept("idle");
    expect(await mine(kind).recall()).toBe("released");
    await stage.lock.gone();
    expect(keeper.recalls).toHaveLength(1);
    expect(await mine(kind).recall()).toBe("free");
    await (await stage.far.locks.lock(stage.lock.name).tryLock())?.unlock();
  });

  it("recall() is answered at once when a caller is inside, and leaves no place behind", async () => {
    await kept("busy");
    await stage.warm(stage.near);
    const [answer, waited] = await timedAwake(mine(kind).recall({ wait: 5_000 }));
    expect(answer).toBe("busy");
    expect(waited).toBeLessThan(AT_ONCE);
    await stage.lock.queued(0);
  });

  it("recall() of a holder that does not answer waits its full time, and leaves no place behind", async () => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    const [answer, waited] = await timed(mine(kind).recall({ wait: 300 }));
    expect([answer, waited >= 295]).toEqual(["silent", true]);
    await stage.lock.queued(0);
    expect(await stage.lock.holder()).toBe(keeper.hold);
  });
});

describe("recall()", () => {
  it("finds a holder without linger busy, with one command", async () => {
    const held = await stage.far.locks.lock(stage.lock.name).lock();
    await mine().isLocked();
    stage.proxy.record();
    expect(await mine().recall()).toBe("busy");
    expect(stage.proxy.commands).toHaveLength(1);
    await held.unlock();
  });

  it.each(["redissonLock", "spinLock"] as const)("of %s says whether it is held", async (kind) => {
    const lock = lockOf(stage.near.locks, kind, stage.lock.name);
    expect(await lock.recall()).toBe("free");
    const held = await lockOf(stage.far.locks, kind, stage.lock.name).lock();
    expect([await lock.recall(), (await lock.inspect()).kept]).toEqual(["busy", false]);
    await held.unlock();
  });

  it("shares one request per name among simultaneous calls", async () => {
    const keeper = await kept("silent");
    const other = `${stage.lock.name}:other`;
    await keeper.keep(other);
    await stage.warm(stage.near);
    const recalled = [mine().recall({ wait: 600 }), mine("fairLock").recall({ wait: 600 }), mine().recall()];
    const beside = stage.near.locks.lock(other).recall({ wait: 600 });
    expect(await Promise.all([...recalled, beside])).toEqual(["silent", "silent", "silent", "silent"]);
    expect(keeper.recalls).toHaveLength(2);
    keeper.manners = "busy";
    expect(await mine().recall()).toBe("busy");
    await stage.far.redis.del(`holdfast:{${other}}`);
  });

  it("concerns the holder that it asked: a lock that moves on meanwhile is not released", async () => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    const recalled = mine().recall({ wait: 5_000 });
    await until(() => keeper.recalls.length === 1, { what: "the recall" });
    const forced = stage.far.locks.lock(stage.lock.name).forceUnlock();
    expect(await recalled).toBe("released"); // it stood in the queue, and has left
    expect(await forced).toBe(true);
    await stage.lock.gone();
  });

  it("that is sent again after a cut leaves no place behind", async () => {
    await kept("silent");
    await stage.warm(stage.near);
    const dropped = stage.proxy.dropReply(runs("acquire"));
    expect(await mine().recall({ wait: 300 })).toBe("silent");
    await dropped;
    await stage.lock.queued(0);
  });

  it("was called ask(), whose error says so", () => {
    const pair = stage.near.locks.readWriteLock(stage.lock.name);
    const spin = lockOf(stage.near.locks, "spinLock", stage.lock.name);
    // @ts-expect-error: it is in no type.
    const ask = (lock: Lock) => lock.ask();
    for (const lock of [mine(), mine("fairLock"), pair.read, pair.write, spin])
      expect(() => ask(lock)).toThrow(
        new TypeError("Cannot ask the holder: lock.ask() is lock.recall() now"),
      );
    expect(Object.keys(mine())).not.toContain("ask");
  });

  it("rejects when Redis does not answer, and for an invalid wait", async () => {
    for (const wait of [0, -1, 1.5, Number.POSITIVE_INFINITY])
      await expect(mine().recall({ wait })).rejects.toThrow(RangeError);
    const near = await stage.join({ url: stage.proxy.url, client: { replyTimeout: 100 } });
    await near.locks.lock(stage.lock.name).isLocked();
    stage.proxy.freeze();
    const refused = { code: "LOCK_UNAVAILABLE", lockName: stage.lock.name };
    await expect(near.locks.lock(stage.lock.name).recall()).rejects.toMatchObject(refused);
    stage.proxy.thaw();
  });
});

describe("forceUnlock()", () => {
  it("makes an idle holder release it, without further notice", async () => {
    const keeper = await kept("idle");
    expect(await mine().forceUnlock()).toBe(true);
    await stage.lock.gone();
    expect(keeper.recalls).toEqual([expect.stringContaining("recall ")]);
  });

  it.each(["busy", "silent"] as const)("takes it from a holder that is %s", async (manners) => {
    const keeper = await kept(manners);
    const [answer, waited] = await timedAwake(mine().forceUnlock({ label: "ops" }));
    expect([answer, waited < 900]).toEqual([true, true]);
    await stage.lock.gone();
    expect(keeper.recalls.at(-1)).toMatch(/^revoked .* ops$/);
  });

  it("with a token makes only that holder release, and not a later one", async () => {
    const keeper = await kept("idle");
    const { name } = stage.lock;
    await stage.warm(stage.near);
    const other = await FakeKeeper.start(stage.server.url, "idle");
    other.token++;
    const { attempt } = HandoffKind.prototype;
    vi.spyOn(HandoffKind.prototype, "attempt").mockImplementationOnce(function (this: HandoffKind, ...args) {
      void other.keep(name).then(() => attempt.apply(this, args));
    });
    expect(await mine().forceUnlock({ token: keeper.token })).toBe(false);
    // Nobody stands behind it, and it was asked nothing.
    await stage.lock.queued(0);
    expect(await stage.lock.holder()).toBe(other.hold);
    expect([keeper.recalls, other.recalls]).toEqual([[], []]);
    await keeper.keep(name);
    expect(await mine().forceUnlock({ token: keeper.token })).toBe(true);
    expect(keeper.recalls).toEqual([expect.stringContaining("recall ")]);
    await stage.lock.gone();
  });

  it("takes it at once if others wait, because the holder was notified before", async () => {
    const keeper = await kept("silent");
    const waiting = stage.far.locks.lock(stage.lock.name).lock();
    await stage.lock.queued(1);
    expect(await mine().forceUnlock()).toBe(true);
    await (await waiting).unlock();
    expect(keeper.recalls.filter((text) => !text.includes(" - "))).toEqual([
      expect.stringMatching(/^revoked /),
    ]);
  });
});

describe("a forged answer", () => {
  it.each(["busy", "idle"] as const)("%s: does not count without the nonce of the request", async (is) => {
    const keeper = await kept("silent");
    await stage.warm(stage.near);
    const { id } = stage.near.locks;
    const recalled = Promise.all([mine().isLocked(), mine().recall({ wait: 300 })]);
    await until(() => keeper.recalls.length === 2, { what: "both questions" });
    for (const nonce of [`${id}.0000000000000000`, id, "-", "", `fake:1:0123456789abcdef.0123456789abcdef`])
      await keeper.tell(id, `${is} ${nonce} ${stage.lock.keys.lock}`);
    expect(await recalled).toEqual([true, "silent"]);
  });
});
