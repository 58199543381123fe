import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import type { SceneLease } from "./scene-process.ts";

// What LockLostError says of a lease that has run out.

const extend = ({ lease }: SceneLease, ms: number): Promise<void> =>
  (lease as unknown as { extend(ms: number): Promise<void> }).extend(ms);

const errorOf = ({ unlock }: SceneLease): Promise<unknown> =>
  unlock().then(
    () => null,
    (error: unknown) => error,
  );

describe("a loss by expiry says what ran out, and after how long", () => {
  test.each([
    [
      "a lease below 100 ms, which was meant in seconds",
      { lease: 60 },
      null,
      /was lost: its lease of 60 ms ran out before it was released; it is in milliseconds\.$/,
    ],
    [
      "a lease",
      { lease: 2_000 },
      null,
      /its lease of 2 s ran out before it was released; give a longer one, or extend\(\) it\.$/,
    ],
    ["its extension", { lease: 2_000 }, 3_000, /its lease of 3 s ran out before it was released; /],
    [
      "a maxHold",
      { maxHold: 2_000 },
      null,
      /its maxHold of 2 s was over; give a longer one, or release it sooner\.$/,
    ],
  ] as const)("%s", (_, options, extension, message) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      const held = await one.take("lock", options);
      if (extension !== null) await extend(held, extension);
      await world.pass(4_000);
      expect(held.held).toBe(false);
      expect(await errorOf(held)).toMatchObject({
        code: "LOCK_LOST",
        reason: "expired",
        message: expect.stringMatching(message),
      });
    })(),
  );

  test(
    "a lease that the watchdog could not renew",
    scene(async (world) => {
      const [one] = world.processes(1, { leaseTime: 3_000 });
      one.heard("error");
      const held = await one.take("lock");
      one.cutOff(10_000);
      await world.pass(4_000);
      expect(held.lease.signal.reason).toMatchObject({
        message: expect.stringMatching(
          /its lease of 3 s ran out before it was renewed; the event loop was blocked, or Redis did not answer\.$/,
        ),
      });
      await errorOf(held);
      await world.pass(10_000);
    }),
  );

  test.each([
    ["a lease", { lease: 60_000 }],
    ["a lease that the watchdog renews", {}],
    ["a lease with a maxHold", { lease: 600_000, maxHold: 60_000 }],
  ])("%s, and the wall clock was set forward", (_, options) =>
    scene(async (world) => {
      const [one] = world.processes(1, { leaseTime: 60_000 });
      const lost = one.heard("lost");
      const held = await one.take("lock", options);
      // Longer than its maxHold, and shorter than its lease, where it has one.
      one.stepClock(120_000);
      expect(held.held).toBe(false);
      expect(await errorOf(held)).toMatchObject({ reason: "expired" });
      expect(lost.map(({ error }) => error.message)).toEqual([
        expect.stringMatching(
          /its lease of (60|600) s is over by the wall clock, with \S+ m?s left by the monotonic clock; the wall clock was set forward, or the machine was suspended\.$/,
        ),
      ]);
      await world.pass(100);
    })(),
  );
});
