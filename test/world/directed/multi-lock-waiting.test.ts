import { expect, test } from "vitest";
import type { MultiLease } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, R, warm } from "./steps.ts";

// Several locks as one, while other callers hold some of them.

const NAMES = ["lock:a", "lock:b", "lock:c"];

const all = (one: SceneProcess, options = {}): Promise<MultiLease> => one.takeAll(NAMES, options);
const holders = ({ redis }: Scene): number[][] => NAMES.map((name) => redis.holders(name));

test(
  "`wait` counts for all of them together",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = [];
    for (const name of ["a", "b", "c"]) held.push(await other.take("lock", { name }));
    const call = world.timed(all(one, { wait: 4_000 }).catch((error: unknown) => error));
    await world.pass(3_500);
    await held[0]?.unlock();
    const { result, took } = await call;
    expect(took).toBeGreaterThan(3_999);
    expect(took).toBeLessThan(4_050);
    expect(result).toMatchObject({
      code: "LOCK_TIMEOUT",
      lockName: "lock:b",
      wait: 4_000,
      message: expect.stringContaining("one of 3 that this call wants together"),
    });
    await world.pass(5);
    expect(holders(world)).toEqual([[], [other.number], [other.number]]);
    for (const lease of held.slice(1)) await lease.unlock();
  }),
);

test(
  "a call whose wait is over asks once for all members that it does not have, even if Redis is slow",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await warm(world, one, other);
    const held = [];
    for (const name of ["a", "b", "c"]) held.push(await other.take("lock", { name }));
    const ROUND_TRIP = 480;
    world.delay(ROUND_TRIP / 2);
    const call = world.timed(all(one, { wait: 3_000 }).catch((error: unknown) => error));
    // The first member is granted when the wait is almost over.
    await world.pass(3_000 - ROUND_TRIP);
    await held[0]?.unlock();
    const { result, took } = await call;
    expect(result).toMatchObject({ code: "LOCK_TIMEOUT", lockName: "lock:b" });
    expect(took).toBeGreaterThan(3_000);
    // One question for the others, and the release of the first one.
    expect(took).toBeLessThan(3_000 + 2.5 * ROUND_TRIP);
    world.delay(1);
    for (const lease of held.slice(1)) await lease.unlock();
  }),
);

test.each([0, 1, 2])(
  "a call ends with its signal while it waits for member %i, and gives the others back",
  (at) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "abc"[at] ?? "" });
      const enough = new AbortController();
      const call = all(one, { signal: enough.signal }).catch((reason: unknown) => reason);
      await world.pass(100);
      expect(holders(world)).toEqual(
        NAMES.map((_, i) => (i < at ? [one.number] : i > at ? [] : [other.number])),
      );
      enough.abort("enough");
      expect((await world.timed(call)).took).toBeLessThan(1);
      expect(await call).toBe("enough");
      await world.pass(5);
      expect(holders(world).flat()).toEqual([other.number]);
      expect(NAMES.flatMap((name) => world.redis.queue(name))).toEqual([]);
      await held.unlock();
    })(),
);

test(
  "a signal that aborts before the first answer ends the call, and nothing stays",
  scene(async (world) => {
    const [one] = world.processes(1);
    const enough = new AbortController();
    const call = all(one, { signal: enough.signal }).catch((reason: unknown) => reason);
    enough.abort("enough");
    expect(await call).toBe("enough");
    expect(await all(one, { signal: enough.signal }).catch((reason: unknown) => reason)).toBe("enough");
    await world.pass(100);
    expect(holders(world).flat()).toEqual([]);
  }),
);

test(
  "an explicit lease begins when all are held, and no renewal prolongs it",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await other.take("lock", { name: "c" });
    const waiting = all(one, { lease: 12_000 });
    await world.pass(100);
    await world.until(() => world.redis.left("lock:a") < 9_000);
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining).toBeGreaterThan(11_850);
    for (const name of NAMES) expect(world.redis.left(name)).toBeGreaterThan(11_850);
    await world.pass(12_000);
    expect([lease.held, lease.signal.reason]).toMatchObject([false, { reason: "expired" }]);
    const { errors } = (await lease.unlock().catch((error: unknown) => error)) as AggregateError;
    for (const error of errors) expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await world.pass(5);
    expect(holders(world).flat()).toEqual([]);
  }),
);

test(
  "it keeps its members while it waits for longer than the lease",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await other.take("lock", { name: "c" });
    const waiting = all(one, { lease: 2_000 });
    await world.pass(100);
    for (let i = 0; i < 50; i++) {
      await world.pass(100);
      expect(holders(world)).toEqual([[one.number], [one.number], [other.number]]);
    }
    await held.unlock();
    const { result: lease, took } = await world.timed(waiting);
    expect(took).toBeLessThan(2 * BY_MESSAGE);
    expect(lease.remaining).toBeLessThanOrEqual(2_000);
    await lease.unlock();
  }),
);

test.each(["its client was notified", "its client was not notified"] as const)(
  "a member is lost while another one is waited for: it begins again, and %s",
  (how) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const isTold = how === "its client was notified";
      if (isTold) await warm(world, one, other);
      const lost = one.heard("lost");
      const held = await other.take("lock", { name: "c" });
      const waiting = all(one);
      await world.pass(100);
      if (isTold) await other.client.lock("lock:a").forceUnlock();
      else world.redis.drop("lock:a");
      await world.pass(100);
      expect(lost).toHaveLength(isTold ? 1 : 0);
      await held.unlock();
      const lease = await waiting;
      expect(lease.held).toBe(true);
      expect(holders(world)).toEqual([[one.number], [one.number], [one.number]]);
      expect(lost.map(({ name }) => name)).toEqual(["lock:a"]);
      await lease.unlock();
    })(),
);

test(
  "the holder of three crashes: the next multi-lock has all after the rest of its hold, and one R for each",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const { tokens } = await all(one);
    const waiting = other.takeAll(NAMES.toReversed());
    await world.pass(100);
    one.crash();
    const { result: lease, took } = await world.timed(waiting);
    expect(took).toBeGreaterThan(L - 200);
    expect(took).toBeLessThanOrEqual(L + NAMES.length * R);
    for (const name of NAMES) expect(lease.tokens.get(name)).toBeGreaterThan(tokens.get(name) ?? Infinity);
    await lease.unlock();
  }),
);

test(
  "processes that take overlapping locks at random: each is served, and tokens grow",
  scene(async (world) => {
    const processes = world.processes(3);
    const names = [..."abcde"].map((one) => `lock:${one}`);
    const last = new Map<string, number>();
    const counts = [0, 0, 0];
    await Promise.all(
      processes.map(async (one, i) => {
        for (let turn = 0; turn < 30; turn++) {
          const some = names.filter((_, n) => (turn * 7 + i * 3 + n * 5) % (2 + (turn % 3)) === 0);
          if (some.length === 0) continue;
          const lease = await one.takeAll((turn + i) % 2 ? some : some.toReversed());
          for (const name of some) {
            expect(lease.tokens.get(name)).toBeGreaterThan(last.get(name) ?? 0);
            last.set(name, lease.tokens.get(name) ?? 0);
          }
          counts[i] = (counts[i] ?? 0) + 1;
          await world.pass(turn % 4);
          await lease.unlock();
        }
      }),
    );
    for (const count of counts) expect(count).toBeGreaterThan(10);
  }),
);
