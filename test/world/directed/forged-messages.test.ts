import { describe, expect, test } from "vitest";
import { WAKE_REST } from "../../../src/defaults.ts";
import { grant, guesses } from "../../support/forger.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, parked, R, warm } from "./steps.ts";

// A client that may only publish gets no lock, ends none, delays none, and makes no other send
// anything. On a real server, with these rights: test/topologies/forged-messages.test.ts.

const KEY = "holdfast:{lock:a}";
const LONG = 3_600_000;

/** The process receives this. */
const send = ({ redis }: Scene, { client }: SceneProcess, text: string): void =>
  redis.publish(`holdfast:client:${client.id}`, text);

/** `far` holds the lock, and `near` waits for it with a lease that is long enough to be worth forging. */
async function contended(world: Scene) {
  const [near, far] = world.processes(2);
  await warm(world, near, far);
  await warm(world, far, near);
  const { held, waiting } = await parked(world, far, [near], { lease: 60_000 });
  return { near, far, held, waiting: waiting[0] };
}

describe("a forged grant", () => {
  test(
    "gives no caller a lock that another one holds, whichever hold is guessed",
    scene(async (world) => {
      const { near, far, held, waiting } = await contended(world);
      const { sent } = near;
      for (const one of [near, far])
        for (const hold of guesses(one.client.id))
          send(world, one, grant(KEY, hold, { at: `${held.token}`, ttl: "60000" }));
      await world.pass(20);
      expect([near.sent, held.held, world.redis.holders("lock:a")]).toEqual([sent, true, [far.number]]);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "of a hold whose id is known counts only with numbers that a script would write",
    scene(async (world) => {
      const { near, far, held, waiting } = await contended(world);
      const places = world.redis.places("lock:a");
      const hold = places[0]?.split(" ").at(-1) ?? "";
      const good = { token: `${held.token + 1_000}`, at: `${held.token}` };
      for (const bad of ["NaN", "x", "", "Infinity", "-1", "0", "1.5", "1e300"])
        for (const what of ["token", "at", "ttl"] as const)
          send(world, near, grant(KEY, hold, { ...good, [what]: bad }));
      // More than was asked for.
      send(world, near, grant(KEY, hold, { ...good, ttl: "60001" }));
      await world.pass(20);
      // It was not even left.
      expect([world.redis.places("lock:a"), world.redis.holders("lock:a")]).toEqual([places, [far.number]]);
      await held.unlock();
      const lease = await waiting;
      expect(lease.token).not.toBe(held.token + 1_000);
      await lease.unlock();
    }),
  );

  test(
    "for no waiter makes no client send a command",
    scene(async (world) => {
      const { near, held, waiting } = await contended(world);
      const { sent } = near;
      for (let i = 0; i < 1_000; i++)
        send(world, near, grant(`holdfast:{nobody:${i}}`, i % 2 ? `nobody:${i}` : `${near.client.id}:${i}`));
      await world.pass(100);
      expect(near.sent).toBe(sent);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );
});

test(
  "a forged revocation ends no lease",
  scene(async (world) => {
    const { near, held, waiting } = await contended(world);
    await held.unlock();
    const lease = await waiting;
    const lost = near.heard("lost");
    for (const hold of guesses(near.client.id)) send(world, near, `revoked ${hold} ${KEY}`);
    await world.pass(20);
    expect([lease.held, lost]).toEqual([true, []]);
    await lease.unlock();
  }),
);

test.each(["probe Infinity", "probe 1e300", "probe x"])(
  "a forged '%s' proves nothing: a half-open subscriber is found anyway",
  (message) =>
    scene(async (world) => {
      const [near, far] = world.processes(2);
      await warm(world, near, far);
      const read = near.onMessage("probe");
      send(world, near, message);
      await read;
      // This one only.
      near.messages.freeze(LONG);
      const first = await parked(world, far, [near]);
      await first.held.unlock();
      const { result, took } = await world.timed(first.waiting[0]);
      expect(took).toBeLessThanOrEqual(R);
      await result.unlock();
      await world.pass(10_000);
      const next = await parked(world, far, [near]);
      await next.held.unlock();
      await inTurn(world, next.waiting[0]);
    })(),
);

describe("a forged wake-up of redissonLock", () => {
  const CHANNEL = "redisson_lock__channel:{redisson:a}";

  test(
    "costs at most one try in 50 ms; after a flood of them the lock is acquired at once",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("redissonLock");
      const waiting = one.take("redissonLock");
      await world.pass(100);
      let isOver = false;
      const flood = (async () => {
        for (let said = 0; !isOver; said++) {
          world.redis.publish(CHANNEL, `${said}`);
          await world.pass(0.5);
        }
      })();
      const { sent } = one;
      await world.pass(1_500);
      expect(one.sent - sent).toBeGreaterThan(0);
      expect(one.sent - sent).toBeLessThan(1_500 / WAKE_REST + 4);
      const { result, took } = await world.timed(held.unlock().then(() => waiting));
      expect(took).toBeLessThan(2 * WAKE_REST);
      isOver = true;
      await flood;
      await result.unlock();
    }),
  );

  test(
    "that comes alone, as an honest one does after a try overtook it, does not delay a later release",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      for (let round = 0; round < 20; round++) {
        const held = await holder.take("redissonLock");
        const waiting = one.take("redissonLock");
        await world.pass(20);
        world.redis.publish(CHANNEL, "0");
        await world.pass(5);
        const { result, took } = await world.timed(held.unlock().then(() => waiting));
        expect(took).toBeLessThan(2 * BY_MESSAGE);
        await result.unlock();
      }
    }),
  );
});
