import { describe, expect, test } from "vitest";
import type { MultiLease } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf } from "./steps.ts";

// The commands for several locks, and what happens to them on the way.

const NAMES = ["lock:a", "lock:b", "lock:c"];
const REPLY_TIMEOUT = 5_000;

const all = (one: SceneProcess, options = {}, names = NAMES): Promise<MultiLease> =>
  one.takeAll(names, options);
const holders = ({ redis }: Scene): number[][] => NAMES.map((name) => redis.holders(name));
const states = ({ redis }: Scene): unknown[] => NAMES.map((name) => redis.state(name));
const NONE = [[], [], []];

/** Its late copies change nothing. */
async function expectNoChange(world: Scene, one: SceneProcess, command: string): Promise<void> {
  const before = states(world);
  await one.on(command).executed();
  await world.pass(10);
  expect(states(world)).toEqual(before);
}

describe("the reply to an acquire is lost, and it comes again", () => {
  test(
    "one member was taken away meanwhile: later members are given back, and all are acquired anew",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await (await all(one)).unlock();
      one.commands.freezeReplies(60_000);
      const call = all(one);
      await world.until(() => holders(world).every(({ length }) => length === 1));
      const first = NAMES.map((name) => world.redis.holds(name).join());
      one.commands.cut({ back: 1_000 });
      world.redis.drop("lock:b");
      const held = await other.take("lock", { name: "b" });
      await world.until(() => world.redis.queue("lock:b").length === 1);
      // It does not wait for one member with a later one held.
      expect(world.redis.holders("lock:c")).toEqual([]);
      await held.unlock();
      const lease = await call;
      const now = NAMES.map((name) => world.redis.holds(name).join());
      expect([now[1] === first[1], now[2] === first[2]]).toEqual([false, false]);
      expect(holders(world)).toEqual([[one.number], [one.number], [one.number]]);
      await lease.unlock();
    }),
  );
});

describe("a late copy changes nothing", () => {
  /** They are held by one acquire whose copies come `ms` later. */
  async function copied(one: SceneProcess, ms: number): Promise<MultiLease> {
    // The connection's first command is another script.
    await (await all(one)).unlock();
    const cut = one.on("acquire").sent(() => one.commands.cut({ copies: ms }));
    const call = all(one);
    await cut;
    return call;
  }

  test.each(["free", "held"] as const)(
    "of an acquire whose leases were given back, after its time: with the locks %s",
    (state) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await (await copied(one, REPLY_TIMEOUT + 2_000)).unlock();
        const held = state === "held" ? await other.take("lock", { name: "b" }) : null;
        await world.pass(REPLY_TIMEOUT + 1_000);
        await expectNoChange(world, one, "acquire");
        await held?.unlock();
      })(),
  );

  test.each([["an earlier member", 1] as const, ["all of them", 3] as const])(
    "of an acquire, at once, while another caller holds %s",
    (_, count) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await (await copied(one, 200)).unlock();
        const held = await all(other, {}, NAMES.slice(0, count));
        await expectNoChange(world, one, "acquire");
        await held.unlock();
      })(),
  );

  test.each([
    ["while its own leases are held", 200] as const,
    [
      "after its time, while its own leases are held and one of them was lost",
      REPLY_TIMEOUT + 2_000,
    ] as const,
  ])("of an acquire, %s: it takes nothing again", (_, ms) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      const lease = await copied(one, ms);
      const isLost = ms > REPLY_TIMEOUT;
      if (isLost) world.redis.drop("lock:a");
      await expectNoChange(world, one, "acquire");
      const error = await lease.unlock().catch((thrown: unknown) => thrown);
      if (isLost) expect(error).toMatchObject({ code: "LOCK_LOST", lockName: "lock:a" });
      else expect(error).toBeUndefined();
    })(),
  );

  test(
    "of a release: the holders of that moment keep the locks",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lease = await all(one);
      const waiting = other.take("lock", { name: "c" });
      await world.pass(100);
      const cut = one.on("release").sent(() => one.commands.cut({ copies: 200 }));
      const unlocking = lease.unlock();
      await cut;
      await unlocking;
      const [third, first] = [await waiting, await other.take("lock")];
      await expectNoChange(world, one, "release");
      expect([first.held, third.held]).toEqual([true, true]);
      await first.unlock();
      await third.unlock();
    }),
  );
});

describe("Redis refuses", () => {
  test(
    "for lack of memory: none is acquired, a busy one is busy, and holds are released and handed over",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lease = await all(one);
      const waiting = other.take("lock", { name: "b" });
      await world.pass(100);
      world.redis.refuse("OOM");
      expect(await outcomeOf(one.tryTakeAll(["lock:d", "lock:e"]))).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(await other.tryTakeAll(["lock:a", "lock:d"])).toBeNull();
      await lease.extend(40_000);
      await lease.unlock();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeLessThan(BY_MESSAGE);
      await next.unlock();
      world.redis.refuse(null);
      await (await all(one)).unlock();
    }),
  );

  test(
    "every write: none is acquired, none is partly released, and all are released when it writes again",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lease = await all(one);
      world.redis.refuse("NOREPLICAS");
      const before = states(world);
      expect(await outcomeOf(other.tryTakeAll(["lock:d", "lock:e"]))).toEqual([
        "LOCK_UNAVAILABLE",
        undefined,
      ]);
      const error = (await lease.unlock().catch((thrown: unknown) => thrown)) as AggregateError;
      expect(error.errors).toMatchObject(
        NAMES.map((lockName) => ({
          code: "LOCK_UNAVAILABLE",
          lockName,
          cause: { message: expect.stringContaining("NOREPLICAS") },
        })),
      );
      expect([states(world), world.redis.holders("lock:d")]).toEqual([before, []]);
      world.redis.refuse(null);
      await world.until(() => holders(world).flat().length === 0);
    }),
  );

  test(
    "because one key has another type: none is acquired",
    scene(async (world) => {
      const [one] = world.processes(1);
      world.redis.overwriteByHash("holdfast:{lock:c}");
      const error = await one.tryTakeAll(NAMES).catch((thrown: unknown) => thrown);
      expect(String(error)).toContain("WRONGTYPE");
      expect([world.redis.holders("lock:a"), world.redis.holders("lock:b")]).toEqual([[], []]);
      world.redis.dropKey("holdfast:{lock:c}");
      await (await all(one)).unlock();
    }),
  );
});

describe("Redis is silent", () => {
  test(
    "it is reported after `wait`, and what the command acquired later is given back",
    scene(async (world) => {
      const [one] = world.processes(1);
      await (await all(one)).unlock();
      one.freeze(10_000);
      const { result, took } = await world.timed(outcomeOf(all(one, { wait: 200 })));
      expect(result).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(took).toBeLessThan(2 * REPLY_TIMEOUT);
      await world.pass(12_000);
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "neither an abort nor close() waits for it",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      for (const process of [one, other]) await (await all(process)).unlock();
      for (const process of [one, other]) process.freeze(10_000);
      const enough = new AbortController();
      const aborted = all(one, { signal: enough.signal }).catch((reason: unknown) => reason);
      const closed = outcomeOf(all(other));
      await world.pass(10);
      enough.abort("enough");
      const closing = other.does(() => other.client.close({ grace: 300 }));
      const { result, took } = await world.timed(Promise.all([aborted, closed]));
      expect(result).toEqual(["enough", ["CLIENT_CLOSED", undefined]]);
      expect(took).toBeLessThan(700);
      await closing;
      await world.pass(12_000);
      expect(holders(world)).toEqual(NONE);
    }),
  );

  /** It is silent when the members that were held meanwhile are confirmed. */
  async function silentAtConfirmation(world: Scene, options: object) {
    const [one, other] = world.processes(2);
    const held = await other.take("lock", { name: "c" });
    const call = all(one, { lease: 10_000, ...options }).catch((reason: unknown) => reason);
    await world.pass(100);
    const confirming = one.on("renew").sent(() => one.commands.freeze(8_000));
    await held.unlock();
    await confirming;
    return { call };
  }

  test(
    "an abort does not wait for a confirmation",
    scene(async (world) => {
      const enough = new AbortController();
      const { call } = await silentAtConfirmation(world, { signal: enough.signal });
      enough.abort("enough");
      const { result, took } = await world.timed(call);
      expect([result, took < 5]).toEqual(["enough", true]);
      await world.pass(10_000);
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "a confirmation takes no longer than the call would wait, and 0.5 s for what it gives back",
    scene(async (world) => {
      const { call } = await silentAtConfirmation(world, { wait: 700 });
      const { result, took } = await world.timed(call);
      expect(result).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      expect(took).toBeLessThan(700 + 500);
      await world.pass(10_000);
      expect(holders(world)).toEqual(NONE);
    }),
  );
});
