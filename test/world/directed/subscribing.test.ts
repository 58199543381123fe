import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { noting } from "./steps.ts";

// Callers of a fair lock that come before their process receives messages: in order, and never worse
// off than by asking.

const LONG = 3_600_000;

test(
  "callers are served in the order of arrival, including the first one, which tried",
  scene(async (world) => {
    const [holder, cold] = world.processes(2);
    const held = await holder.take("fairLock");
    const order: string[] = [];
    const names = Array.from({ length: 20 }, (_, i) => `${i}`);
    const call = noting(order, "fairLock");
    const waiting = names.map((name) => call(cold, name));
    await world.pass(100);
    expect(world.redis.queue("fair:a")).toHaveLength(20);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(names);
  }),
);

test(
  "callers are served in that order even if some of them try while SUBSCRIBE is slow",
  scene(async (world) => {
    const [holder, cold] = world.processes(2);
    const held = await holder.take("fairLock");
    const order: string[] = [];
    const call = noting(order, "fairLock");
    cold.withoutMessages(300);
    const waiting = [call(cold, "first"), call(cold, "second")];
    await cold.on("acquire").answered();
    // The second one tries after 100 ms, and has no answer when messages arrive; the third comes then.
    await cold.on("acquire").sent(() => cold.commands.freezeReplies(500));
    await cold.onMessage("probe");
    waiting.push(call(cold, "third"));
    await world.until(() => world.redis.queue("fair:a").length === 3);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(["first", "second", "third"]);
  }),
);

test(
  "a caller keeps a lock that its try has won, though the answer comes after the subscription",
  scene(async (world) => {
    const [other, cold] = world.processes(2);
    cold.withoutMessages(700);
    const held = await other.take("fairLock");
    const order: string[] = [];
    const call = noting(order, "fairLock");
    const waiting = [call(cold, "first")];
    // That it is held; it subscribes, and tries meanwhile.
    await cold.on("acquire").answered();
    await held.unlock();
    const won = cold.on("acquire").executed(() => cold.commands.freezeReplies(1_000));
    await won;
    expect(world.redis.holders("fair:a")).toEqual([cold.number]);
    waiting.push(call(other, "second"));
    await world.pass(20);
    // Waits for the subscription only.
    waiting.push(call(cold, "third"));
    await Promise.all(waiting);
    expect(order).toEqual(["first", "second", "third"]);
  }),
);

describe("while the connection for messages hangs", () => {
  test(
    "a free lock is acquired",
    scene(async (world) => {
      const [one] = world.processes(1);
      one.withoutMessages(LONG);
      one.heard("error");
      const first = await one.take("fairLock");
      const second = one.take("fairLock");
      await first.unlock();
      const { took } = await world.timed(second.then((lease) => lease.unlock()));
      // It waits for SUBSCRIBE, and is tried after 100 ms.
      expect(took).toBeLessThan(110);
    }),
  );

  test(
    "all get their turns in the order of arrival, also when the connection is given up",
    scene(async (world) => {
      const [other, one] = world.processes(2);
      one.withoutMessages(LONG);
      one.heard("error");
      const held = await other.take("fairLock");
      const order: string[] = [];
      const call = noting(order, "fairLock");
      const waiting: Promise<void>[] = [];
      const names = ["0", "1", "2", "3"];
      for (const name of names) {
        waiting.push(call(one, name));
        // They come at different times, and each tries at times of its own.
        const short = one.take("fairLock", { wait: 110 });
        await expect(short).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
      }
      await world.until(() => world.redis.queue("fair:a").length === 4);
      await held.unlock();
      await Promise.all(waiting);
      expect(order).toEqual(names);
    }),
  );

  test(
    "a caller reports the lock as held, or waits on, because Redis did answer",
    scene(async (world) => {
      const [other, one] = world.processes(2);
      one.withoutMessages(LONG);
      one.heard("error");
      const held = await other.take("fairLock");
      const patient = one.take("fairLock");
      const outcomes = [300, 300, 1_500].map((wait) =>
        one.take("fairLock", { wait }).catch(({ code }) => code as string),
      );
      expect(await Promise.all(outcomes)).toEqual(Array(3).fill("LOCK_TIMEOUT"));
      await held.unlock();
      await (await patient).unlock();
    }),
  );
});
